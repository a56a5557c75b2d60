// How tokens are chosen and drafted: one table of settings that the flags of run, chat and bench and the /set of chat
// share, and their way into the C API. Names, meanings and defaults are those of auspex_sequence_desc.
#pragma once

#include "cli/common/input/values.h"

#include <auspex/auspex_tools.h>
#include <functional>
#include <span>

namespace auspex::cli {

inline constexpr uint32_t kUsualMaxDraftLen = 8; // room that draft_len auto and /set draft-len have

struct SamplingOptions {
    uint32_t n_predict = 256; // 0: until the context is full
    double temperature = 0.0;
    std::optional<uint64_t> seed{}; // absent: a random one
    double repeat_penalty = 1.0, presence_penalty = 0.0, frequency_penalty = 0.0;
    std::vector<auspex_token_bias> biases{}; // each token once
    uint32_t top_k = 0;
    double top_p = 1.0, min_p = 0.0;
    std::vector<std::string> stop_texts{};

    auspex_drafter drafter = AUSPEX_DRAFTER_AUTO;
    uint32_t draft_len = AUSPEX_DRAFT_LEN_AUTO; // 0: plain
    auspex_acceptance acceptance = AUSPEX_ACCEPT_REJECTION;
    double lenience = 1.0;
    uint32_t ngram_max = 4;

    bool is_plain() const { return draft_len == 0 || drafter == AUSPEX_DRAFTER_NONE; }
    bool is_lossless() const { return lenience >= 1.0 || is_plain(); }
    // What an engine has to be able to: never 0, for a plain engine costs no less.
    uint32_t max_draft_len() const;
};

// All that may be asked for, as the library lists them.
std::span<const auspex_drafter_info> drafters();
const auspex_drafter_info& drafter_info(auspex_drafter drafter);
// Whether the engine has the draft model, or the copy of the target's own weights, that it cannot do without.
bool is_loaded(const auspex_drafter_info& drafter, const auspex_engine_info& engine);
bool drafts_by_pass_alone(auspex_drafter drafter); // the draft model, or the target's own weights
const char* drafter_name(auspex_drafter drafter); // "model"; AUTO is "auto"
// Of those that flags may name, in the order of their values: "a, b or c".
std::string drafter_names(const std::function<bool(const auspex_drafter_info&)>& which, const char* between, const char* last);
const char* acceptance_name(auspex_acceptance acceptance);
std::string draft_len_name(uint32_t draft_len); // "4", "auto"

uint32_t parse_draft_len(const std::string& flag, const std::string& text); // with auto
auspex_drafter parse_drafter(const std::string& flag, const std::string& text);

enum class SettingGroup { sampling, speculation };

// A setting of one value. The flag is "--" and its name; the name after /set is the same.
struct SamplingSetting {
    const char* name;
    const char* value_name; // "T"
    SettingGroup group;
    std::string help; // with the default in brackets
    // Throws Failure(kExitUsage) that names `flag`.
    void (*set)(SamplingOptions& options, const std::string& flag, const std::string& text);
    std::string (*show)(const SamplingOptions& options);
};
std::span<const SamplingSetting> sampling_settings();

// ID+VALUE, ID-VALUE, ID-inf, as llama.cpp spells it; 1,2,3 for --ban.
void add_logit_bias(SamplingOptions& options, const std::string& flag, const std::string& text);
void add_ban(SamplingOptions& options, const std::string& flag, const std::string& text);
void add_stop_text(SamplingOptions& options, const std::string& flag, const std::string& text);

// Settings that exclude each other.
void check_together(const SamplingOptions& options);
// Once it is known how many tokens there are.
void check_biases(const SamplingOptions& options, uint32_t vocab_size);

// A description of a sequence without its prompt. It points into the options and into this.
class SequenceDesc {
  public:
    SequenceDesc(const SamplingOptions& options, uint64_t seed);
    SequenceDesc(const SequenceDesc&) = delete;
    SequenceDesc& operator=(const SequenceDesc&) = delete;

    void set_prompt(const std::vector<uint32_t>& tokens); // points into them
    auspex_sequence_desc& operator*() { return desc_; }
    auspex_sequence_desc* operator->() { return &desc_; }

  private:
    std::vector<const char*> stop_texts_;
    auspex_sequence_desc desc_;
};

} // namespace auspex::cli
