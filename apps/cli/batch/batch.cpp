// auspex batch: answers the lines of a file, many at once, and puts each result on the disk when it comes. The models
// are loaded when the first line needs them.
#include "cli/batch/input_lines.h"
#include "cli/batch/options.h"
#include "cli/batch/results.h"
#include "cli/common/engine/answering.h"
#include "cli/common/output/figures.h"
#include "cli/common/output/progress_bar.h"
#include "cli/common/system/terminal.h"
#include "openai/json_text.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <unordered_set>

namespace auspex::cli {

namespace {

using Clock = std::chrono::steady_clock;

struct LineJob : Job {
    uint64_t line = 0; // of the input
    std::string custom_id{};
};

class Batch {
  public:
    explicit Batch(const BatchOptions& options)
        : options_(options), lines_("-i", options.input, openai::kMaxJsonBytes + 1), results_(options.output) {}

    // The exit code.
    int run() {
        std::unique_ptr<LineJob> waiting; // the next, for which slots are missing
        while (true) {
            begin_jobs(waiting);
            if (interrupted()) give_up_waiting();
            if (progress_) progress_->draw(lines_.fraction());
            if (!answering_ || answering_->is_idle()) break;
            if (!answering_->advance([&](Job& job) { finish(static_cast<LineJob&>(job)); })) client_->wait();
        }
        progress_.reset();
        const bool are_left = waiting != nullptr || has_given_up_ || (interrupted() && find_work());
        print_counts(are_left);
        return are_left ? kExitAgain : kExitOk;
    }

  private:
    // Jobs run until one has to wait for slots, there are no more, or a signal came: then only what has begun goes on.
    void begin_jobs(std::unique_ptr<LineJob>& waiting) {
        while (true) {
            if (!waiting) waiting = next_job();
            if (!waiting || (interrupted() && waiting->n_begun == 0)) return;
            try {
                if (!answering_->begin(*waiting)) return;
                running_.push_back(std::move(waiting));
            } catch (const openai::RequestError& error) {
                refuse(waiting->line, waiting->custom_id, error);
            }
            waiting.reset();
        }
    }

    // The next line that can be answered; those before it that cannot are refused. Null: there is none, or a signal
    // came.
    std::unique_ptr<LineJob> next_job() {
        while (!interrupted() && find_work()) {
            if (!answering_) load(); // takes its time, so that a signal may come
            if (interrupted()) return nullptr;
            is_found_ = false;
            try {
                if (is_repeated_)
                    throw openai::RequestError("custom_id", "expected one of its own, found that of an earlier line",
                                               openai::kDuplicateId);
                return make_job(openai::parse_batch_line(lines_.text()));
            } catch (const openai::RequestError& error) {
                refuse(lines_.number(), custom_id_, error);
            }
        }
        return nullptr;
    }

    std::unique_ptr<LineJob> make_job(openai::BatchLine line) {
        auto job = std::make_unique<LineJob>();
        job->line = lines_.number();
        job->custom_id = std::move(line.custom_id);
        job->request = openai::parse_request(line.endpoint, line.body, answering_->limits());
        answering_->prepare(*job);
        return job;
    }

    // Reads on to the next line that has no result, and stays there until it is taken (is_found_ is false again).
    bool find_work() {
        while (!is_found_ && lines_.next()) {
            const bool is_whole = lines_.text().size() <= openai::kMaxJsonBytes;
            if (is_whole && lines_.text().find_first_not_of(" \t\r") == std::string::npos) continue; // blank
            custom_id_ = openai::custom_id_of(lines_.text());
            is_repeated_ = custom_id_ && !seen_.insert(*custom_id_).second;
            if (!options_.part.has(lines_.number())) continue;
            is_found_ = !results_.has(lines_.number(), custom_id_, is_repeated_);
            if (!is_found_) ++n_skipped_;
        }
        return is_found_;
    }

    void load() {
        Client::Request request{options_.models};
        request.max_sequences = options_.parallel;
        request.max_waiting = most_alive(options_); // so that none of them is ever refused
        request.max_draft_len = options_.sampling.max_draft_len();
        client_.emplace(request);
        answering_.emplace(AnsweringOptions{.models = options_.models,
                                            .template_name = options_.template_name,
                                            .date = options_.date,
                                            .sampling = options_.sampling,
                                            .max_choices = options_.parallel,
                                            .max_alive = most_alive(options_)},
                           *client_);
        progress_.emplace("answering");
        begun_ = Clock::now();
    }

    void refuse(uint64_t line, const std::optional<std::string>& custom_id, const openai::RequestError& error) {
        results_.add({.line = line, .custom_id = custom_id, .status = error.status(), .body = error.body()});
        ++n_failed_;
    }

    void finish(const LineJob& job) {
        if (job.failure) throw *job.failure;
        results_.add({.line = job.line, .custom_id = job.custom_id, .body = openai::to_json(job.answer)});
        ++n_done_;
        n_tokens_ += job.answer.totals.predicted_n;
        forget(job);
    }

    void forget(const Job& job) {
        std::erase_if(running_, [&](const auto& other) { return other.get() == &job; });
    }

    // What runs is finished, what only waits for its turn is not. Says so the first time.
    void give_up_waiting() {
        if (!answering_) return;
        answering_->give_up_waiting([&](Job& job) {
            has_given_up_ = true;
            forget(job);
        });
        if (says_end_ || running_.empty()) return;
        says_end_ = true;
        progress_->clear();
        std::fprintf(stderr, "finishing the %zu that run; a second signal ends at once\n", running_.size());
    }

    void print_counts(bool are_left) const {
        const std::chrono::duration<double, std::milli> took = begun_ ? Clock::now() - *begun_ : Clock::duration{};
        std::fprintf(stderr, "done %llu, failed %llu, skipped %llu; %llu tokens, %s tok/s\n", n_done_, n_failed_,
                     n_skipped_, static_cast<unsigned long long>(n_tokens_),
                     number(per_second(n_tokens_, took.count())).c_str());
        if (are_left) std::fputs("stopped, and lines are left: the same command goes on\n", stderr);
    }

    const BatchOptions& options_;
    InputLines lines_;
    Results results_;
    std::optional<Client> client_{}; // these three: once a line needs them
    std::optional<Answering> answering_{};
    std::optional<ProgressBar> progress_{};
    std::optional<Clock::time_point> begun_{};
    std::vector<std::unique_ptr<LineJob>> running_{};

    std::unordered_set<std::string> seen_{}; // custom_ids of the lines so far, of all parts
    std::optional<std::string> custom_id_{}; // of the line
    bool is_repeated_ = false, is_found_ = false, has_given_up_ = false, says_end_ = false;
    unsigned long long n_done_ = 0, n_failed_ = 0, n_skipped_ = 0;
    uint64_t n_tokens_ = 0;
};

} // namespace

int batch(const BatchOptions& options) {
    if (is_same_file(options.input, options.output))
        throw Failure(kExitUsage, "-i and -o are the same file, expected another for the results");
    const InterruptGuard guard(Interrupts::keys_and_termination);
    return Batch(options).run();
}

} // namespace auspex::cli
