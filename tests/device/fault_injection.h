// One life of a tiny engine under injection: create, two sequences (one forked), a few rounds, destroy. Shared by the
// short and the long campaign.
#pragma once

#include "session/engine_fixture.h"
#include "vk_injector.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace auspex::test {

struct Life {
    Status first_error;                        // of create, or of a later call
    bool created = false, finished = false, was_parked = false, has_evicted = false;
    std::vector<std::vector<uint32_t>> tokens; // of each sequence, when finished
};

enum class Pace {
    free,    // step without a bound until everything is generated
    sliced,  // segment by segment, as under a time budget
    dropped, // sliced, and destroyed in the middle of a round
    itself,  // as free, and the target drafts by its own weights
    parked,  // as free, with hardly the pages of one sequence: the first is parked and resumed, and a third, of another text, has beginnings evicted
};

inline SyntheticModel tiny_model(uint32_t hidden_size, uint64_t seed) {
    SyntheticModel model;
    model.config.hidden_size = hidden_size;
    model.config.n_layers = 1;
    model.config.n_heads = 2;
    model.config.n_kv_heads = 1;
    model.config.head_dim = 32;
    model.config.ffn_size = 40;
    model.config.vocab_size = 50;
    model.config.max_position = 96;
    model.config.tied_embedding = true;
    model.dtype = DType::bf16;
    model.seed = seed;
    model.scale = 0.2f;
    return model;
}

inline EngineDesc tiny_engine() {
    EngineDesc desc;
    desc.target_synthetic = tiny_model(32, 1);
    desc.draft_synthetic = tiny_model(24, 2);
    desc.device.hook = keeping_devices(VkInjector::hook());
    desc.max_sequences = 2;
    desc.max_draft_len = 2;
    desc.compile_threads = 3;
    return desc;
}

// Device loss is sticky: everything that would use the device says so.
inline void expect_lost(Engine& engine, uint64_t sequence) {
    SequenceRequest request;
    request.prompt = {1, 2, 3};
    EXPECT_EQ(step(engine, -1).status().code(), Code::device_lost);
    EXPECT_EQ(engine.turns().wait(1'000'000).status().code(), Code::device_lost);
    EXPECT_EQ(engine.create_sequence(request).status().code(), Code::device_lost);
    EXPECT_EQ(engine.fork_sequence(sequence, {}).status().code(), Code::device_lost);
    EXPECT_EQ(step(engine, 0.001).status().code(), Code::device_lost);
}

inline Life live(const Injection& injection, Pace pace, const std::string& cache_folder = "") {
    Life life;
    keep_driver_loaded(); // the devices that tests keep would outlive it
    VkInjector& injector = VkInjector::instance();
    injector.reset(injection);
    auto note = [&](const Status& status) {
        if (life.first_error.ok()) life.first_error = status;
    };
    EngineDesc desc = tiny_engine();
    desc.cache_folder = cache_folder;
    if (pace == Pace::itself) {
        desc.draft_synthetic.reset();
        desc.self_draft = SelfDraft::q4_0;
    }
    if (pace == Pace::parked) {
        desc.max_context = 48;
        desc.cache_tokens = 48;
        desc.max_waiting = 2;
        desc.prefix_cache = true;
        desc.adjust_tuning = [](Tuning& tuning) { tuning.prompt_by_rows = false; };
    }
    auto made = Engine::create(desc, Logger{});
    if (!made.ok()) {
        note(made.status());
        return life;
    }
    life.created = true;
    Engine& engine = *made.value();
    SequenceRequest request;
    for (uint32_t i = 0; i < 20; ++i) request.prompt.push_back((i * 7) % 50);
    request.max_tokens = 9;
    request.draft_len = 2;
    if (pace == Pace::itself) request.drafter = DrafterChoice::self;
    request.ignore_eos = true;
    std::vector<uint64_t> ids;
    auto first = engine.create_sequence(request);
    if (first.ok()) ids.push_back(first.value());
    else note(first.status());
    constexpr int kMany = 2000;
    int failures = 0;
    for (int i = 0; i < kMany && !ids.empty() && failures < 4; ++i) {
        const bool in_slices = pace == Pace::sliced || pace == Pace::dropped;
        auto stepped = step(engine, in_slices ? 0.0005 : -1.0);
        if (stepped.ok() && ids.size() == 1) { // in the middle of the first one's work
            SequenceRequest forked = request;
            forked.prompt.clear();
            forked.sampling = {0.9f, 5};
            auto second = engine.fork_sequence(ids[0], forked);
            if (second.ok()) ids.push_back(second.value());
            else note(second.status());
        }
        if (pace == Pace::parked && stepped.ok()) { // once it has said something
            LiveSequence& parked = *find_sequence(engine, ids[0]);
            if (parked.n_parked == 0 && parked.n_generated() > 2) {
                EXPECT_TRUE(engine.admission().park(ids[0]).ok());
                life.was_parked = true;
                continue;
            }
            if (parked.is_held_back && (i % 3 == 0 || !stepped.value().pending)) {
                EXPECT_TRUE(engine.admission().resume(ids[0]).ok());
                continue;
            }
        }
        const size_t n_sequences = pace == Pace::parked ? 3 : 2;
        if (stepped.ok() && !stepped.value().pending) {
            if (ids.size() == 2 && n_sequences == 3) {
                SequenceRequest other = request;
                for (uint32_t& token : other.prompt) token = 49 - token;
                other.max_tokens = 25; // all pages
                auto third = engine.create_sequence(other);
                if (third.ok()) ids.push_back(third.value());
                else note(third.status());
                if (third.ok()) continue;
            }
            life.finished = ids.size() == n_sequences;
            life.has_evicted = engine.scheduler().load().prefix.pages_evicted > 0;
            break;
        }
        Status status = stepped.status();
        if (status.ok()) status = engine.turns().wait(20'000'000'000).status();
        if (pace == Pace::dropped && i == 12) break;
        if (status.ok()) continue;
        note(status);
        ++failures;
        if (status.code() != Code::device_lost) continue;
        expect_lost(engine, ids[0]);
        break;
    }
    for (uint64_t id : ids)
        if (LiveSequence* sequence = find_sequence(engine, id); sequence && life.finished)
            life.tokens.emplace_back(sequence->tokens.begin() + sequence->prompt_n, sequence->tokens.end());
    if (!ids.empty()) {
        EXPECT_TRUE(destroy_sequence(engine, ids[0]).ok());
    }
    return life;
}

// What holds of every life, whatever failed in it. `reference`: the tokens without injection.
inline void check_life(const Injection& injection, Pace pace, const std::vector<std::vector<uint32_t>>& reference,
                       const std::string& cache_folder = "") {
    const VkInjector& injector = VkInjector::instance();
    const Life life = live(injection, pace, cache_folder);
    SCOPED_TRACE("call " + std::to_string(injection.at) + " " + injector.fired_call() + " answers " + vk_result_name(injection.code) +
                 (injection.persistent ? " for ever" : " once") + ", pace " + std::to_string(static_cast<int>(pace)));
    EXPECT_EQ(injector.alive(), "") << "leaked";
    EXPECT_TRUE(injector.misuse().empty()) << injector.misuse().front();
    const Code expected = injection.code == VK_ERROR_OUT_OF_HOST_MEMORY     ? Code::out_of_host_memory
                          : injection.code == VK_ERROR_OUT_OF_DEVICE_MEMORY ? Code::out_of_device_memory
                                                                            : Code::device_lost;
    if (!injector.fired() || life.first_error.ok()) {
        // Best effort, or made good by trying again, or after the last word.
        const std::string& call = injector.fired_call();
        const bool excused = !injector.fired() || call == "vkGetQueryPoolResults" || call == "vkGetPipelineCacheData" ||
                             call == "vkCreatePipelineCache" || call == "vkWaitForFences" || pace == Pace::dropped;
        EXPECT_TRUE(excused) << "nobody heard of it";
    } else {
        EXPECT_EQ(life.first_error.code(), expected) << life.first_error.message();
        // Where calls fail for ever, two kinds may be told by a later one: times are best effort, and of kernels that are
        // compiled side by side the first in line is told.
        const std::string& call = injector.fired_call();
        const bool by_a_later = (call == "vkGetQueryPoolResults" && expected != Code::device_lost) || call == "vkCreateShaderModule" ||
                                call == "vkCreateComputePipelines";
        const auto is_told = [&](const std::string& failed) { return life.first_error.message().find(failed) != std::string::npos; };
        EXPECT_TRUE(by_a_later ? std::any_of(injector.failed_calls().begin(), injector.failed_calls().end(), is_told) : is_told(call))
            << life.first_error.message();
    }
    // One failure for want of memory costs a call, not a token.
    const bool survives = !injector.fired() || (!injection.persistent && expected != Code::device_lost);
    if (life.created && survives && pace != Pace::dropped) {
        EXPECT_TRUE(life.finished);
    }
    if (life.finished) {
        EXPECT_EQ(life.tokens, reference);
    }
}

} // namespace auspex::test
