// What answers requests, as the engine thread sees it: an engine with its models, or what stands in for one in tests. One
// thread at a time, but for prepare.
#pragma once

#include "cli/common/engine/job.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace auspex::server {

class Backend {
  public:
    virtual ~Backend() = default;

    // Makes tokens of what the job's request has, and room for its answer. Throws openai::RequestError. Any thread.
    virtual void prepare(cli::Job& job) = 0;
    // Afterwards the job stays where it is until it has ended or is abandoned. Throws openai::RequestError: nothing of it
    // is left.
    virtual void begin(cli::Job& job) = 0;
    virtual void abandon(cli::Job& job) = 0;
    virtual void park(const cli::Job& job) = 0; // takes no part until resume
    virtual void resume(const cli::Job& job) = 0;
    // Of its first sequence that is not over.
    virtual std::optional<auspex_sequence_state> state(const cli::Job& job) = 0;
    // Moves on, and adds those that ended. False: nothing will be new before wait() returns. Throws cli::Failure: the device
    // or the engine can no more.
    virtual bool advance(std::vector<cli::Job*>& ended) = 0;
    virtual void wait(uint32_t timeout_ms) = 0;
    virtual size_t n_alive() const = 0; // sequences
    virtual auspex_engine_load load() = 0;
};

} // namespace auspex::server
