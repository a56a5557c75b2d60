// auspex batch: what it is asked, with every value checked; its flags (flags.cpp) and the command (batch.cpp).
#pragma once

#include "cli/common/input/options.h"

namespace auspex::cli {

// Of the lines 1, 2, … those of part 2 of 3 are 2, 5, 8, …
struct Part {
    uint64_t index = 1, count = 1; // index from 1

    bool has(uint64_t line) const { return (line - 1) % count == index - 1; }
};

struct BatchOptions {
    ModelOptions models;
    std::string input, output; // files
    Part part;
    uint32_t parallel = 16;    // answers that are written side by side
    std::string template_name; // layout of conversations; empty: the model's own
    std::optional<std::string> date;
    SamplingOptions sampling; // of it what is said of drafts: where a request says nothing
};

// Sequences that the engine is given at once: as many as run, and as many that wait to take their place.
inline uint32_t most_alive(const BatchOptions& options) {
    return 2 * options.parallel;
}

void declare_batch(CLI::App& app, BatchOptions& options, Shared& shared);
void complete(BatchOptions& options, const Shared& shared); // checks what the flags say together
int batch(const BatchOptions& options);                     // the exit code; throws Failure

} // namespace auspex::cli
