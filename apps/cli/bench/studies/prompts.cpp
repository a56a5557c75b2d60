// The texts.
#include "cli/bench/studies/prompts.h"

#include <array>
#include <random>

namespace auspex::cli {

namespace {

constexpr size_t kRandomTokens = 48;

constexpr std::array kKinds = {
    PromptKind{"story", kBuiltInPrompt, true},
    PromptKind{
        "dialogue",
        "\"Where are you going?\" asked Ruby.\n\"To the river,\" said Bolt.\n\"May I come with you?\" asked Ruby.\n",
        false},
    PromptKind{"code", "def add(a, b):\n    return a + b\n\ndef sub(a, b):\n    return a - b\n\ndef mul(a, b):\n",
               false},
    PromptKind{"json", "[{\"id\": 1, \"name\": \"fox\"}, {\"id\": 2, \"name\": \"fox\"}, {\"id\": 3, \"name\": ", true},
    PromptKind{"list", "Things in the box:\n1. a red ball\n2. a blue ball\n3. a green ball\n4. a red ball\n5.", false},
    PromptKind{"copy",
               "The fox saw a big tree. The tree had a small door. The fox saw a big tree. The tree had a small door. "
               "The fox saw a big tree.",
               true},
    PromptKind{"numbers", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21", false},
    PromptKind{"random tokens", nullptr, true},
};

} // namespace

std::span<const PromptKind> prompt_kinds() {
    return kKinds;
}

std::vector<uint32_t> tokens_of(Client& client, const PromptKind& kind) {
    if (kind.text != nullptr) return client.tokenize(kind.text);
    std::mt19937 random(1); // its numbers are the same everywhere, those of a distribution are not
    std::vector<uint32_t> tokens;
    for (size_t i = 0; i < kRandomTokens; ++i)
        tokens.push_back(static_cast<uint32_t>(random() % client.info().vocab_size));
    return tokens;
}

} // namespace auspex::cli
