// Written by hand: a line of help, a line of type, then a line for each sample.
#include "server/metrics.h"

#include <algorithm>
#include <array>

namespace auspex::server {

namespace {

std::string number(double value) {
    return openai::Json(value).dump();
}

std::string number(uint64_t value) {
    return std::to_string(value);
}

// What may stand between quotes.
std::string label(const std::string& value) {
    std::string text;
    for (const char c : value) {
        if (c == '\\' || c == '"') text += '\\';
        if (c == '\n')
            text += "\\n";
        else
            text += c;
    }
    return text;
}

void begin(std::string& text, const std::string& name, const char* type, const std::string& help) {
    text += "# HELP " + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

template <typename Value>
void write(std::string& text, const std::string& name, const char* type, const std::string& help, Value value) {
    begin(text, name, type, help);
    text += name + " " + number(value) + "\n";
}

const char* name_of(Metrics::Result result) {
    constexpr std::array names = {"stop", "length", "cancelled", "error", "rejected"};
    return names[static_cast<size_t>(result)];
}

// In the order of auspex_sequence_stats.drafter_rounds.
constexpr std::array drafter_names = {"none", "model", "ngram", "lookup", "host"};

} // namespace

void Histogram::add(double value) {
    const auto at = std::lower_bound(bounds_.begin(), bounds_.end(), value);
    ++counts_[static_cast<size_t>(at - bounds_.begin())];
    sum_ += value;
}

void Histogram::write(std::string& text, const std::string& name, const std::string& help) const {
    begin(text, name, "histogram", help);
    uint64_t n = 0;
    for (size_t i = 0; i < counts_.size(); ++i) {
        n += counts_[i];
        const std::string bound = i < bounds_.size() ? number(bounds_[i]) : "+Inf";
        text += name + "_bucket{le=\"" + bound + "\"} " + number(n) + "\n";
    }
    text += name + "_sum " + number(sum_) + "\n" + name + "_count " + number(n) + "\n";
}

void Metrics::add(const StepNews& step) {
    said_.add(step.said);
    for (const double seconds : step.first_token_s)
        first_token_.add(seconds);
    for (const double seconds : step.gaps_s)
        gap_.add(seconds);
    for (const double seconds : step.queue_s)
        queue_.add(seconds);
    for (const auspex_sequence_stats& stats : step.ended) {
        for (size_t i = 0; i < drafter_names.size(); ++i)
            rounds_[drafter_names[i]] += stats.drafter_rounds[i];
        rounds_["self"] += stats.self_drafter_rounds;
        for (size_t i = 1; i < drafter_names.size(); ++i)
            drafts_ += stats.drafter_rounds[i];
        drafts_ += stats.self_drafter_rounds;
        if (stats.rounds > 0) round_rows_ = 1 + static_cast<double>(stats.draft_n) / stats.rounds;
        tested_n_ += stats.tested_n;
        overlap_ += stats.overlap;
        if (stats.predicted_speedup >= 0) predicted_speedup_ = stats.predicted_speedup;
    }
}

void Metrics::add_request(const std::string& endpoint, Result result, double seconds) {
    ++requests_[{endpoint, name_of(result)}];
    if (result != Result::rejected) request_.add(seconds);
}

void Metrics::add_prompt(uint64_t n_tokens, uint64_t n_cached) {
    prompt_n_ += n_tokens;
    cached_n_ += n_cached;
}

std::string Metrics::text(const Snapshot& now, const http::Counts& connections, const About& about, bool is_up,
                          double heartbeat_age_s) const {
    const auspex_engine_load& load = now.load;
    std::string text;
    write(text, "auspex_up", "gauge", "1 while requests are taken.", uint64_t{is_up ? 1u : 0u});
    begin(text, "auspex_build_info", "gauge", "Always 1; its labels say what runs.");
    text += "auspex_build_info{version=\"" + label(about.version) + "\",numerics=\"" + label(about.numerics) +
            "\",device=\"" + label(about.device) + "\",model=\"" + label(about.model) + "\"} 1\n";
    write(text, "auspex_engine_heartbeat_seconds", "gauge", "Since the engine's thread was last seen.", heartbeat_age_s);
    write(text, "auspex_device_turn_seconds", "gauge", "Since the device has had its oldest round or part of a prompt; 0: it has none.", load.turn_ms / 1000);

    write(text, "auspex_requests_running", "gauge", "Sequences that have a slot and have not ended.", uint64_t{load.n_running});
    write(text, "auspex_requests_waiting", "gauge", "Sequences without a slot.", uint64_t{load.n_waiting});
    write(text, "auspex_requests_paused", "gauge", "Answers whose readers are too slow.", uint64_t{now.n_paused});
    write(text, "auspex_requests_parked", "gauge", "Answers that lost their slots to others, and wait to go on.", uint64_t{now.n_parked});
    begin(text, "auspex_requests_total", "counter", "Requests that have ended, by how.");
    for (const auto& [of, n] : requests_)
        text += "auspex_requests_total{endpoint=\"" + label(of.first) + "\",result=\"" + label(of.second) + "\"} " + number(n) + "\n";

    write(text, "auspex_prompt_tokens_total", "counter", "Tokens of prompts.", prompt_n_);
    write(text, "auspex_prompt_tokens_cached_total", "counter", "Of them: were in the cache, and not read.", cached_n_);
    write(text, "auspex_generated_tokens_total", "counter", "Tokens that were generated.", said_.n);
    write(text, "auspex_own_tokens_total", "counter", "Of them: what rounds chose themselves, plain, as a correction or as a bonus; the others are accepted drafts.", said_.own());

    begin(text, "auspex_cache_pages", "gauge", "Pages of the key-value caches: of sequences (live), of known beginnings alone (tree), free.");
    const auto pages = [&](const char* pool, uint32_t all, uint32_t free, uint32_t evictable) {
        const auto in_state = [&](const char* state, uint32_t n) {
            text += "auspex_cache_pages{pool=\"" + std::string(pool) + "\",state=\"" + state + "\"} " + number(uint64_t{n}) + "\n";
        };
        in_state("live", all - free), in_state("tree", evictable), in_state("free", free - evictable);
    };
    pages("target", load.target_pages, load.target_pages_free, load.target_pages_evictable);
    pages("draft", load.draft_pages, load.draft_pages_free, load.draft_pages_evictable);
    write(text, "auspex_cache_evictions_total", "counter", "Pages of beginnings that were given up.", load.prefix_pages_evicted);
    write(text, "auspex_prefix_lookup_tokens_total", "counter", "Tokens that the prefix cache was asked for.", load.prefix_tokens);
    write(text, "auspex_prefix_hit_tokens_total", "counter", "Of them: it had.", load.prefix_hit_tokens);
    write(text, "auspex_preemptions_total", "counter", "Times that a sequence lost its slot.", load.parked_n);

    first_token_.write(text, "auspex_first_token_seconds", "From a request's arrival to its first token.");
    gap_.write(text, "auspex_token_gap_seconds", "Between rounds of an answer, each of one or more tokens.");
    queue_.write(text, "auspex_queue_seconds", "From a request's arrival to its slot.");
    request_.write(text, "auspex_request_seconds", "From a request's arrival to its end.");

    begin(text, "auspex_rounds_total", "counter", "Rounds with at least one token, by who drafted.");
    for (const auto& [drafter, n] : rounds_)
        text += "auspex_rounds_total{drafter=\"" + label(drafter) + "\"} " + number(n) + "\n";
    write(text, "auspex_drafts_total", "counter", "Rounds that tested drafts.", drafts_);
    write(text, "auspex_draft_tokens_total", "counter", "Drafts that were tested; of running answers those that are known.", said_.drafted);
    write(text, "auspex_accepted_tokens_total", "counter", "Of them: accepted.", said_.accepted);
    begin(text, "auspex_accepted_tokens_per_position_total", "counter", "Accepted drafts by their place in the round.");
    for (size_t i = 0; i < said_.accepted_at.size(); ++i)
        text += "auspex_accepted_tokens_per_position_total{position=\"" + std::to_string(i) + "\"} " + number(said_.accepted_at[i]) + "\n";
    if (tested_n_ > 0)
        write(text, "auspex_alpha", "gauge", "Mean overlap of draft and target, of all that was tested.", overlap_ / static_cast<double>(tested_n_));
    if (predicted_speedup_ >= 0)
        write(text, "auspex_predicted_speedup", "gauge", "Over plain decoding, that the engine expected of its choices last.", predicted_speedup_);
    if (round_rows_ >= 0)
        write(text, "auspex_round_rows", "gauge", "Rows of a sequence in a round, drafts and one more: the mean of the one that ended last.", round_rows_);

    begin(text, "auspex_connections", "gauge", "Connections that are open.");
    text += "auspex_connections{state=\"streaming\"} " + number(uint64_t{connections.streaming}) + "\n";
    text += "auspex_connections{state=\"other\"} " + number(uint64_t{connections.open - std::min(connections.open, connections.streaming)}) + "\n";
    write(text, "auspex_connections_accepted_total", "counter", "Connections since the start.", connections.accepted);
    write(text, "auspex_connections_refused_total", "counter", "Of them: over a cap.", connections.refused);
    return text;
}

} // namespace auspex::server
