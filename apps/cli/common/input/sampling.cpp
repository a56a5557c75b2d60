// Settings of several values, checks across settings, and the way into the C API.
#include "cli/common/input/sampling.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace auspex::cli {

namespace {

constexpr double kHighestBias = 1e6;

void add_bias(SamplingOptions& options, const std::string& flag, uint32_t token, double bias) {
    for (const auspex_token_bias& other : options.biases)
        if (other.token == token)
            throw Failure(kExitUsage, flag + format(": found token %u twice, expected one bias for each token", token));
    if (options.biases.size() == AUSPEX_MAX_BIASES)
        throw Failure(kExitUsage, flag + format(": expected at most %u tokens in all", AUSPEX_MAX_BIASES));
    options.biases.push_back({token, static_cast<float>(bias)});
}

} // namespace

uint32_t SamplingOptions::max_draft_len() const {
    return draft_len == AUSPEX_DRAFT_LEN_AUTO || draft_len == 0 ? kUsualMaxDraftLen : draft_len;
}

void add_logit_bias(SamplingOptions& options, const std::string& flag, const std::string& text) {
    const size_t sign = text.find_first_of("+-");
    const std::string number = sign == std::string::npos ? "" : text.substr(sign + 1);
    const bool is_ban = number == "inf" && text[sign] == '-';
    char* end = nullptr;
    const double size = std::strtod(number.c_str(), &end);
    const bool begins_with_digit = !number.empty() && (number[0] == '.' || (number[0] >= '0' && number[0] <= '9'));
    const bool is_number = begins_with_digit && *end == '\0' && size <= kHighestBias;
    const auto token = parse_id(text.substr(0, sign));
    if (!token || (!is_ban && !is_number))
        throw Failure(kExitUsage, flag + " " + (text.empty() ? "\"\"" : as_one_line(text)) +
                                      ": expected a token id, + or -, and a number up to 1000000, as 15043+1.5; "
                                      "15043-inf bans the token");
    const double bias = is_ban ? std::numeric_limits<double>::infinity() : size;
    add_bias(options, flag + " " + text, *token, text[sign] == '-' ? -bias : bias);
}

void add_ban(SamplingOptions& options, const std::string& flag, const std::string& text) {
    for (const uint32_t token : parse_whole_list(flag, text, 0, 0xffffffffu))
        add_bias(options, flag + " " + text, token, -std::numeric_limits<double>::infinity());
}

void add_stop_text(SamplingOptions& options, const std::string& flag, const std::string& text) {
    if (text.empty()) throw Failure(kExitUsage, flag + " \"\": expected a text that ends the answer");
    if (const size_t at = find_invalid_utf8(text); at != std::string::npos)
        throw Failure(kExitUsage, flag + format(": expected UTF-8, found the byte 0x%02x at offset %zu",
                                                static_cast<unsigned char>(text[at]), at));
    options.stop_texts.push_back(text);
}

void check_together(const SamplingOptions& options) {
    if (options.lenience < 1.0 && options.acceptance == AUSPEX_ACCEPT_COUPLED)
        throw Failure(kExitUsage,
                      format("--lenience %g and --acceptance coupled contradict each other: coupled text is "
                             "the plain text; give one of them",
                             options.lenience));
}

void check_biases(const SamplingOptions& options, uint32_t vocab_size) {
    for (const auspex_token_bias& bias : options.biases)
        if (bias.token >= vocab_size)
            throw Failure(kExitUsage,
                          format("--logit-bias or --ban: token id %u is outside the vocabulary, expected 0 to %u",
                                 bias.token, vocab_size - 1));
}

SequenceDesc::SequenceDesc(const SamplingOptions& options, uint64_t seed) {
    for (const std::string& text : options.stop_texts)
        stop_texts_.push_back(text.c_str());
    auspex_sequence_desc_init(&desc_, sizeof desc_);
    desc_.max_tokens = options.n_predict;
    desc_.temperature = static_cast<float>(options.temperature);
    desc_.seed = seed;
    desc_.draft_len = options.draft_len;
    desc_.drafter = options.drafter;
    desc_.acceptance = options.acceptance;
    desc_.lenience = static_cast<float>(options.lenience);
    desc_.ngram_max = options.ngram_max;
    desc_.repeat_penalty = static_cast<float>(options.repeat_penalty);
    desc_.presence_penalty = static_cast<float>(options.presence_penalty);
    desc_.frequency_penalty = static_cast<float>(options.frequency_penalty);
    desc_.biases = options.biases.data();
    desc_.bias_count = options.biases.size();
    desc_.top_k = options.top_k;
    desc_.top_p = static_cast<float>(options.top_p);
    desc_.min_p = static_cast<float>(options.min_p);
    desc_.stop_texts = stop_texts_.data();
    desc_.stop_text_count = stop_texts_.size();
}

void SequenceDesc::set_prompt(const std::vector<uint32_t>& tokens) {
    desc_.prompt_tokens = tokens.data();
    desc_.prompt_token_count = tokens.size();
}

} // namespace auspex::cli
