// The part of a run's summary that tells what drafts did, what was chosen and whether it paid.
#include "cli/common/output/speculation_report.h"

#include <algorithm>
#include <cstdio>

namespace auspex::cli {

namespace {

constexpr size_t kLabelWidth = 13, kTextWidth = 80 - kLabelWidth;

// Code points, which are columns in what is printed here.
size_t width(const std::string& text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// Words over as many lines as they need.
void print_words(const char* label, const std::string& text) {
    std::string line;
    const auto flush = [&] {
        print_line(label, line);
        label = "";
        line.clear();
    };
    for (const std::string& word : split(text, ' ')) {
        if (word.empty()) continue;
        if (!line.empty() && width(line) + 1 + width(word) > kTextWidth) flush();
        line += (line.empty() ? "" : " ") + word;
    }
    if (!line.empty()) flush();
}

// One line per accepted_len, with a bar that shows its share of the rounds. Lengths beyond the last that occurred and
// the first four are left out.
void print_histogram(const std::vector<uint64_t>& histogram) {
    constexpr uint64_t bar_width = 40;
    size_t n_lines = histogram.size();
    while (n_lines > 5 && histogram[n_lines - 1] == 0)
        --n_lines;
    const uint64_t most = std::max<uint64_t>(1, *std::max_element(histogram.begin(), histogram.end()));
    for (size_t accepted_len = 0; accepted_len < n_lines; ++accepted_len) {
        const uint64_t n_rounds = histogram[accepted_len];
        std::string bar = n_rounds > 0 ? " " : "";
        for (uint64_t i = 0; i < (n_rounds * bar_width + most - 1) / most; ++i)
            bar += "▪";
        std::fprintf(stderr, "%-12s %2zu %6llu%s\n", accepted_len == 0 ? "accepted_len" : "", accepted_len,
                     static_cast<unsigned long long>(n_rounds), bar.c_str());
    }
}

// "18 model, 2 plain"
std::string rounds_by_drafter(const SpeculationReport& speculation) {
    std::string text;
    for (size_t i = 1; i <= kRoundDrafters; ++i) { // plain ones last
        const size_t drafter = i % kRoundDrafters;
        const uint64_t n = speculation.drafter_rounds[drafter];
        if (n == 0) continue;
        text += (text.empty() ? "" : ", ") +
                format("%llu %s", static_cast<unsigned long long>(n), drafter == 0 ? "plain" : round_drafter(drafter));
    }
    return text;
}

// What theory makes of it; "" when nothing was measured.
std::string measures(const SpeculationReport& speculation) {
    std::string text;
    const auto add = [&](const char* name, std::optional<double> value) {
        if (value) text += (text.empty() ? "" : ", ") + format("%s %.2f", name, *value);
    };
    add("alpha", speculation.alpha());
    add("c", speculation.c);
    add("v", speculation.v);
    if (const auto expected = speculation.expected_speedup(); expected && speculation.draft_n > 0)
        text += (text.empty() ? "" : "; ") + format("expected %.2f times plain decoding", *expected);
    return text;
}

// Whether it was worth its while; "" when it was, or nobody knows.
std::string complaint(const SpeculationReport& speculation, const SamplingOptions& sampling) {
    const auspex_drafter_info& drafter = drafter_info(sampling.drafter);
    const bool searches = drafter.searches != 0 && drafter.may_use_model == 0;
    const bool chose = sampling.drafter == AUSPEX_DRAFTER_AUTO || sampling.draft_len == AUSPEX_DRAFT_LEN_AUTO;
    const auto expected = speculation.expected_speedup();
    if (speculation.draft_n == 0 && searches)
        return "Nothing was drafted: this text repeats nothing that was followed.";
    if (speculation.draft_n == 0) // where the engine chose, its choice says why
        return chose ? "" : "Nothing was drafted: every round was plain.";
    if (!expected || *expected >= 1.0) return "";
    return format("Speculation did not pay: about %.2f times the speed of plain decoding is expected.", *expected) +
           (chose ? "" : " Try --drafter auto --draft-len auto, or --no-draft.");
}

} // namespace

void print_line(const char* label, const std::string& text) {
    std::fprintf(stderr, "%-12s %s\n", label, text.c_str());
}

void print_speculation(const SpeculationReport& speculation, const SamplingOptions& sampling) {
    const std::string rounds =
        format("%llu round%s", static_cast<unsigned long long>(speculation.rounds), speculation.rounds == 1 ? "" : "s");
    if (sampling.is_plain()) return print_line("speculation", "none, " + rounds);

    const std::string by_drafter = rounds_by_drafter(speculation);
    print_words("speculation", format("drafter %s, draft_len %s: ", drafter_name(sampling.drafter),
                                      draft_len_name(sampling.draft_len).c_str()) +
                                   rounds + (by_drafter.empty() ? "" : " (" + by_drafter + ")"));
    const auto rate = speculation.acceptance_rate();
    print_line("", format("%llu drafted, %llu accepted", static_cast<unsigned long long>(speculation.draft_n),
                          static_cast<unsigned long long>(speculation.draft_n_accepted)) +
                       (rate ? format(" (%.1f %%)", *rate * 100.0) : "") +
                       format(", %.2f tokens per round", speculation.tokens_per_round().value_or(0.0)));
    if (const std::string text = measures(speculation); !text.empty()) print_line("", text);
    print_words("choice", speculation.choice);
    print_words("", complaint(speculation, sampling));
    if (!sampling.is_lossless())
        print_words("NOT LOSSLESS", format("--lenience %g accepts drafts that the target would not: the text is not "
                                           "distributed as the target's.",
                                           sampling.lenience));
    if (!speculation.accepted_histogram.empty() && speculation.draft_n > 0)
        print_histogram(speculation.accepted_histogram);
}

} // namespace auspex::cli
