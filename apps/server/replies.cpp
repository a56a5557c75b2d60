// The head of a stream goes out when the engine has taken the request: until then it can still be refused with a status.
#include "server/replies.h"

#include "cli/common/input/values.h"
#include "openai/json_text.h"

namespace auspex::server {

namespace {

std::string words(const Ticket::Progress& progress) {
    switch (progress.phase) {
    case AUSPEX_PHASE_WAITING:
        return cli::format("queued %u", progress.place + 1);
    case AUSPEX_PHASE_PROMPT:
        return cli::format("prompt %u/%u", progress.rows_read, progress.rows_to_read);
    default:
        return "";
    }
}

Metrics::Result result_of(const openai::Answer& answer) {
    for (const openai::Choice& choice : answer.choices)
        if (openai::finish_reason(choice.stop_reason) == "length") return Metrics::Result::length;
    return Metrics::Result::stop;
}

} // namespace

http::Response error_response(const openai::RequestError& error, uint32_t retry_after_s) {
    http::Response response{.status = error.status(), .body = openai::to_text(error.body())};
    if (retry_after_s == 0 && error.status() == 503) retry_after_s = 1; // clients and balancers ask again, elsewhere if they can
    if (retry_after_s > 0) response.headers.emplace_back("Retry-After", std::to_string(retry_after_s));
    if (error.status() == 401) response.headers.emplace_back("WWW-Authenticate", "Bearer");
    return response;
}

void Replies::open(std::shared_ptr<Ticket> ticket, std::string endpoint, std::vector<http::Header> headers,
                   std::function<void(std::shared_ptr<Ticket>)> gone) {
    const Ticket* key = ticket.get();
    ticket->exchange().on_gone([this, key, gone = std::move(gone)] {
        const auto at = replies_.find(key);
        if (at == replies_.end()) return;
        const std::shared_ptr<Ticket> of = at->second.ticket;
        close(key, Metrics::Result::cancelled);
        gone(of);
    });
    replies_.emplace(key, Reply{std::move(ticket), std::move(endpoint), std::move(headers)});
}

void Replies::take(StepNews step) {
    metrics_.add(step);
    for (TicketEvent& event : step.events) {
        const auto at = replies_.find(event.ticket.get());
        if (at == replies_.end()) continue; // its client has gone
        Reply& reply = at->second;
        switch (event.kind) {
        case TicketEvent::Kind::begun:
            begin(reply, event.progress);
            break;
        case TicketEvent::Kind::progress:
            if (const std::string text = words(event.progress); !text.empty()) write(reply, openai::comment(text));
            break;
        case TicketEvent::Kind::news:
            news(reply, event.news);
            break;
        case TicketEvent::Kind::ended:
            end(reply);
            break;
        case TicketEvent::Kind::refused:
            refuse(reply, *event.error, event.retry_after_s);
            break;
        }
    }
}

void Replies::refuse_all(const openai::RequestError& error) {
    while (!replies_.empty())
        refuse(replies_.begin()->second, error, 0);
}

void Replies::begin(Reply& reply, const Ticket::Progress& progress) {
    Ticket& ticket = *reply.ticket;
    if (!ticket.is_stream()) return;
    uint64_t prompt_n = 0;
    for (const auto& prompt : ticket.prompts)
        prompt_n += prompt.size();
    reply.chunks.emplace(ticket.answer, *ticket.request.stream, prompt_n);
    http::Response head{.content_type = "text/event-stream", .headers = reply.headers};
    head.headers.emplace_back("Cache-Control", "no-cache");
    head.headers.emplace_back("X-Accel-Buffering", "no"); // nginx would collect it
    ticket.exchange().begin_stream(std::move(head));
    if (const std::string text = words(progress); !text.empty()) write(reply, openai::comment(text));
    for (size_t i = 0; i < ticket.answer.choices.size(); ++i)
        write(reply, reply.chunks->first_text(i, ticket.answer.choices[i].before));
}

void Replies::write(Reply& reply, std::string text) {
    if (!reply.chunks || text.empty()) return;
    reply.last_write = Clock::now();
    reply.ticket->exchange().write(std::move(text));
}

void Replies::news(Reply& reply, const std::vector<ChoiceNews>& all) {
    if (!reply.chunks) return;
    std::string text;
    for (const ChoiceNews& news : all) {
        text += reply.chunks->news({news.choice, news.text, news.tokens, news.logprobs, news.cached_n});
        if (news.stop_reason == AUSPEX_STOP_NONE) continue;
        if (++reply.n_ended < reply.ticket->n_choices())
            text += reply.chunks->end_of_choice(news.choice, news.stop_reason, nullptr);
        else
            reply.last = {.choice = news.choice, .stop_reason = news.stop_reason};
    }
    write(reply, std::move(text));
}

void Replies::end(Reply& reply) {
    Ticket& ticket = *reply.ticket;
    http::Exchange& exchange = ticket.exchange();
    const openai::Answer& answer = ticket.answer; // whole: the engine thread has let it go
    if (reply.chunks) {
        std::string text;
        if (reply.last) text += reply.chunks->end_of_choice(reply.last->choice, reply.last->stop_reason, &answer);
        write(reply, text + reply.chunks->end(answer));
        exchange.end();
    } else {
        exchange.respond({.body = openai::to_text(openai::to_json(answer)), .headers = reply.headers});
    }
    metrics_.add_prompt(answer.totals.prompt_n, answer.totals.cached_n);
    close(&ticket, result_of(answer));
}

void Replies::refuse(Reply& reply, const openai::RequestError& error, uint32_t retry_after_s) {
    http::Exchange& exchange = reply.ticket->exchange();
    const bool is_server_side = error.status() >= 500 && error.status() != 503;
    if (reply.chunks) {
        write(reply, openai::error_event(error));
        exchange.abort();
    } else {
        http::Response response = error_response(error, retry_after_s);
        response.headers.insert(response.headers.end(), reply.headers.begin(), reply.headers.end());
        exchange.respond(std::move(response));
    }
    close(reply.ticket.get(), reply.chunks || is_server_side ? Metrics::Result::error : Metrics::Result::rejected);
}

void Replies::close(const Ticket* ticket, Metrics::Result result) {
    const auto at = replies_.find(ticket);
    if (at == replies_.end()) return;
    const double seconds = std::chrono::duration<double>(Clock::now() - ticket->arrived()).count();
    metrics_.add_request(at->second.endpoint, result, seconds);
    at->second.ticket->exchange().on_gone(nullptr); // its client may leave while the last of it is sent: another ticket can lie here then
    replies_.erase(at); // the ticket may end here
}

void Replies::keep_alive(Clock::duration silence) {
    const auto now = Clock::now();
    for (auto& [ticket, reply] : replies_)
        if (reply.chunks && now - reply.last_write >= silence) write(reply, openai::comment("still here"));
}

} // namespace auspex::server
