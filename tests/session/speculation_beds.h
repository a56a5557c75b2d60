// Devices and pairs that simulated engines run on, each with what is thought of it before anything is measured.
#pragma once

#include "session/speculation_simulator.h"

namespace auspex::simulated {

struct Bed {
    Device device;
    CostPrior prior;
};

inline CostPrior prior_of(double target_ms, double c, bool is_cpu) {
    const double bytes = target_ms * (is_cpu ? 10e6 : 300e6);
    return {static_cast<uint64_t>(bytes), static_cast<uint64_t>(bytes * c), 0, 0, is_cpu};
}

inline std::vector<Bed> beds() {
    std::vector<Bed> all;
    const auto add = [&](const char* name, double target_ms, double c, double row, const CostPrior& prior) -> Device& {
        all.emplace_back();
        all.back().prior = prior;
        Device& device = all.back().device;
        device.name = name;
        device.target_ms = target_ms;
        device.c = c;
        device.row = row;
        return device;
    };
    add("lavapipe, equal precision", 1000, 0.385, 0.27, prior_of(700, 0.385, true));
    add("lavapipe, small draft", 60, 0.12, 0.2, prior_of(60, 0.1, true));
    add("lavapipe, costs above the prior", 60, 0.3, 0.4, prior_of(60, 0.1, true));
    add("GPU, equal precision", 12, 0.385, 0.02, prior_of(10, 0.385, false));
    add("GPU, 4-bit draft", 8, 0.11, 0.02, prior_of(8, 0.11, false));
    add("GPU, slow at few rows", 8, 0.2, 0.3, prior_of(8, 0.11, false));
    add("no timestamps", 8, 0.15, 0.04, prior_of(8, 0.11, false)).has_timestamps = false;
    add("drifting", 20, 0.15, 0.1, prior_of(20, 0.1, true)).slowness = [](double at_ms) { return 1.5 + 0.5 * std::sin(at_ms / 3000); };
    add("jumping", 20, 0.15, 0.1, prior_of(20, 0.1, true)).slowness = [](double at_ms) { return std::fmod(at_ms, 4000) < 2000 ? 1 : 2; };
    Device& noisy = add("hiccups", 60, 0.15, 0.2, prior_of(60, 0.1, true));
    noisy.noise = 0.1;
    noisy.hiccup = 0.01;
    return all;
}

// Llama-3.2-3B in bf16 and 1B in q4_0 on an H100, measured: a fast device, on which reading a prompt again takes as long as several tokens.
inline Bed h100() {
    Bed bed = {{}, {.target_bytes = 6'425'000'000, .draft_bytes = 695'000'000, .target_stages = 143, .draft_stages = 83, .is_cpu = false}};
    bed.device.name = "H100, 3B bf16 and 1B q4_0";
    bed.device.target_ms = 3, bed.device.c = 0.33, bed.device.accept_ms = 0.02, bed.device.overhead_ms = 0.05, bed.device.noise = 0.01;
    bed.device.recording_ms = 0.7;
    bed.device.measured_v = {{1, 1}, {2, 1.1}, {3, 1.28}, {4, 1.3}, {5, 1.56}, {8, 1.75}, {16, 2.9}};
    bed.prior.prompt_part = 0.38;
    bed.device.prompt_ms = [](uint32_t rows) { return 8 + 0.065 * rows; };
    bed.device.measured_catch_up_ms = {{1, 3.3}, {16, 3.3}, {512, 16.7}};
    return bed;
}

} // namespace auspex::simulated
