// The table of settings, and how each value is read and written.
#include "cli/common/input/sampling.h"

#include "openai/request.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

namespace auspex::cli {

namespace {

template <typename Value> using Names = std::span<const std::pair<const char*, Value>>;

constexpr std::pair<const char*, auspex_acceptance> kAcceptances[] = {{"rejection", AUSPEX_ACCEPT_REJECTION},
                                                                      {"coupled", AUSPEX_ACCEPT_COUPLED}};

template <typename Value> const char* name_of(Names<Value> names, Value value) {
    const auto found = std::find_if(names.begin(), names.end(), [&](const auto& name) { return name.second == value; });
    return found == names.end() ? "?" : found->first;
}

template <typename Value> Value parse_name(Names<Value> names, const std::string& flag, const std::string& text) {
    std::string expected;
    for (const auto& [name, value] : names) {
        if (text == name) return value;
        expected += (expected.empty() ? "" : "|") + std::string(name);
    }
    throw Failure(kExitUsage, flag + " " + (text.empty() ? "\"\"" : text) + ": expected " + expected);
}

uint32_t parse_top_k(const std::string& flag, const std::string& text) {
    return text == "0" ? 0u : static_cast<uint32_t>(parse_whole(flag, text, 1, 0x7fffffff, "0 (all tokens) or "));
}

} // namespace

std::span<const auspex_drafter_info> drafters() {
    static const std::vector<auspex_drafter_info> all = [] {
        std::vector<auspex_drafter_info> rows(auspex_list_drafters(nullptr, 0));
        auspex_list_drafters(rows.data(), static_cast<uint32_t>(rows.size()));
        return rows;
    }();
    return all;
}

bool is_loaded(const auspex_drafter_info& drafter, const auspex_engine_info& engine) {
    const bool has_self = engine.is_self_draft != 0;
    return openai::is_loaded(drafter, {.has_draft_model = engine.has_draft != 0 && !has_self, .has_self_draft = has_self});
}

bool drafts_by_pass_alone(auspex_drafter drafter) {
    return drafter_info(drafter).may_use_model != 0 && drafter_info(drafter).searches == 0;
}

const auspex_drafter_info& drafter_info(auspex_drafter drafter) {
    static const auspex_drafter_info unknown = {AUSPEX_DRAFTER_MAX_ENUM, "?", "", 0, 0, 0, 0, ~0u, 0};
    const auto found = std::find_if(drafters().begin(), drafters().end(), [&](const auspex_drafter_info& row) { return row.drafter == drafter; });
    return found == drafters().end() ? unknown : *found;
}

const char* drafter_name(auspex_drafter drafter) { return drafter_info(drafter).name; }

std::string drafter_names(const std::function<bool(const auspex_drafter_info&)>& which, const char* between, const char* last) {
    std::map<auspex_drafter, std::string> names; // by public value
    for (const auspex_drafter_info& row : drafters())
        if (row.asks_host == 0 && which(row)) names[row.drafter] = row.name; // this program asks nobody
    std::string text;
    size_t i = 0;
    for (const auto& [value, name] : names) {
        text += (i == 0 ? "" : i + 1 == names.size() ? last : between) + name;
        ++i;
    }
    return text;
}

namespace {

// "model, ngram (what it does), …, none, or auto: what it does"; the last row is the default.
std::string drafter_help() {
    std::string text = "Who drafts: ";
    for (const auspex_drafter_info& row : drafters()) {
        if (row.asks_host != 0) continue;
        const bool is_last = &row == &drafters().back(), has_summary = *row.summary != 0;
        text += (is_last ? "or " : "") + std::string(row.name);
        if (has_summary) text += is_last ? std::string(": ") + row.summary : " (" + std::string(row.summary) + ")";
        text += is_last ? " (" + std::string(row.name) + ")" : ", ";
    }
    return text;
}

} // namespace

const char* acceptance_name(auspex_acceptance acceptance) {
    return name_of<auspex_acceptance>(kAcceptances, acceptance);
}

std::string draft_len_name(uint32_t draft_len) {
    return draft_len == AUSPEX_DRAFT_LEN_AUTO ? "auto" : format("%u", draft_len);
}

uint32_t parse_draft_len(const std::string& flag, const std::string& text) {
    if (text == "auto") return AUSPEX_DRAFT_LEN_AUTO;
    return static_cast<uint32_t>(parse_whole(flag, text, 0, AUSPEX_MAX_DRAFT_LEN, "auto or "));
}

auspex_drafter parse_drafter(const std::string& flag, const std::string& text) {
    for (const auspex_drafter_info& row : drafters())
        if (text == row.name && row.asks_host == 0) return row.drafter;
    throw Failure(kExitUsage, flag + " " + (text.empty() ? "\"\"" : text) + ": expected " + drafter_names([](const auto&) { return true; }, "|", "|"));
}

std::span<const SamplingSetting> sampling_settings() {
    using Options = SamplingOptions;
    using Text = const std::string&;
    constexpr auto sampling = SettingGroup::sampling, speculation = SettingGroup::speculation;
    static const std::array settings = {
        SamplingSetting{"temp", "T", sampling, "Temperature; 0: greedy (0)",
                        [](Options& o, Text flag, Text text) { o.temperature = parse_temperature(flag, text); },
                        [](const Options& o) { return format("%g", o.temperature); }},
        SamplingSetting{"top-k", "K", sampling, "Only the K most probable tokens; 0: all (0)",
                        [](Options& o, Text flag, Text text) { o.top_k = parse_top_k(flag, text); },
                        [](const Options& o) { return format("%u", o.top_k); }},
        SamplingSetting{"top-p", "P", sampling,
                        "Only the fewest most probable tokens that hold P of the probability; 1: all (1)",
                        [](Options& o, Text flag, Text text) { o.top_p = parse_number(flag, text, 0, 1); },
                        [](const Options& o) { return format("%g", o.top_p); }},
        SamplingSetting{"min-p", "P", sampling,
                        "Only tokens at least P times as probable as the most probable; 0: all (0)",
                        [](Options& o, Text flag, Text text) { o.min_p = parse_number(flag, text, 0, 1); },
                        [](const Options& o) { return format("%g", o.min_p); }},
        SamplingSetting{
            "repeat-penalty", "X", sampling,
            "Makes tokens of prompt and answer less probable: positive logits are divided by X, others "
            "multiplied; 1: off (1)",
            [](Options& o, Text flag, Text text) { o.repeat_penalty = parse_number(flag, text, 0.01, 100); },
            [](const Options& o) { return format("%g", o.repeat_penalty); }},
        SamplingSetting{
            "presence-penalty", "X", sampling, "Subtracted from the logits of such tokens; 0: off (0)",
            [](Options& o, Text flag, Text text) { o.presence_penalty = parse_number(flag, text, -100, 100); },
            [](const Options& o) { return format("%g", o.presence_penalty); }},
        SamplingSetting{
            "frequency-penalty", "X", sampling, "The same, times how often they occurred; 0: off (0)",
            [](Options& o, Text flag, Text text) { o.frequency_penalty = parse_number(flag, text, -100, 100); },
            [](const Options& o) { return format("%g", o.frequency_penalty); }},
        SamplingSetting{
            "drafter", "NAME", speculation,
            drafter_help(),
            [](Options& o, Text flag, Text text) { o.drafter = parse_drafter(flag, text); },
            [](const Options& o) { return std::string(drafter_name(o.drafter)); }},
        SamplingSetting{
            "draft-len", "K", speculation,
            format("Drafts per round, 0 to %u; auto: chosen for each round, none where that is expected to be "
                   "faster (auto)",
                   AUSPEX_MAX_DRAFT_LEN),
            [](Options& o, Text flag, Text text) { o.draft_len = parse_draft_len(flag, text); },
            [](const Options& o) { return draft_len_name(o.draft_len); }},
        SamplingSetting{"ngram-max", "N", speculation,
                        "Longest n-gram or match that " + drafter_names([](const auto& row) { return row.searches != 0 && row.may_use_model == 0; }, ", ", " and ") +
                            " go by, 2 to 16 (4)",
                        [](Options& o, Text flag, Text text) {
                            o.ngram_max = static_cast<uint32_t>(parse_whole(flag, text, 2, 16));
                        },
                        [](const Options& o) { return format("%u", o.ngram_max); }},
        SamplingSetting{"acceptance", "RULE", speculation,
                        "rejection, or coupled: fewer drafts are accepted, but a seed gives the same text whatever the "
                        "drafts (rejection)",
                        [](Options& o, Text flag, Text text) {
                            o.acceptance = parse_name<auspex_acceptance>(kAcceptances, flag, text);
                        },
                        [](const Options& o) { return std::string(acceptance_name(o.acceptance)); }},
        SamplingSetting{"lenience", "L", speculation,
                        "NOT LOSSLESS below 1: accepts drafts as if they were L times as probable for the drafter; the "
                        "text is then no longer the target's (1)",
                        [](Options& o, Text flag, Text text) { o.lenience = parse_number(flag, text, 0.0001, 1); },
                        [](const Options& o) { return format("%g", o.lenience); }},
    };
    return settings;
}

} // namespace auspex::cli
