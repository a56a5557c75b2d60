// Prompts for the bundled pair: those of the goldens (texts, then conversations), and others that are long, short, odd or not text at all.
#pragma once

#include "session/engine_fixture.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace auspex::test {

inline nlohmann::json read_goldens() {
    std::ifstream file(std::string(AUSPEX_TEST_DATA) + "/goldens.json");
    EXPECT_TRUE(file.good()) << AUSPEX_TEST_DATA << "/goldens.json";
    return nlohmann::json::parse(file, nullptr, false);
}

// The goldens' twelve texts and eight more; `many`: the conversations and a few more again.
inline std::vector<std::vector<uint32_t>> bundled_prompts(const Engine& engine, bool many = false) {
    std::vector<std::vector<uint32_t>> prompts;
    std::vector<std::vector<uint32_t>> conversations;
    for (const auto& golden : read_goldens()) (golden.contains("prompt") ? prompts : conversations).push_back(golden["ids"].get<std::vector<uint32_t>>());
    const std::string story = "Once there was a little girl named Mia who lived by the sea. Every morning she walked to the "
                              "old pier with her brother Tom and looked for shells. ";
    std::vector<std::string> texts = {
        "Lily",
        "The owl said, \"Who took my hat?\" Nobody answered, and so",
        "x = {'a': 1, 'b': [2, 3, (4, 5)], 0x1f: 1e-9}\nfor k, v in sorted(x.items()):\n",
        "日本語 café ñandú Ω≈ç√ 🙂🙃 \u202eabc\u202c \xf0\x9f\xa4\xb7\xe2\x80\x8d",
        "\xff\xfe broken \xc3( utf-8 \xe2\x82",
        story + story + story + story + story,
    };
    const std::string code = "def add(a, b):\n    return a + b\n\nclass Stack:\n    def __init__(self):\n        self.items = []\n\n";
    if (many)
        texts.insert(texts.end(), {"import os\nfrom collections import deque\n\n\ndef walk(top):\n    queue = deque([top])\n    while queue:\n",
                                   "class Error(Exception):\n    pass\n\n\n", "    \n\n\t\t  \n", std::string(60, 'a') + std::string(60, '1'),
                                   code + code + code + code + "# " + story});
    for (const std::string& text : texts) {
        auto tokens = engine.tokenize(text, true);
        EXPECT_TRUE(tokens.ok()) << tokens.status().message();
        if (tokens.ok()) prompts.push_back(tokens.value());
    }
    prompts.push_back({1});    // BOS alone
    prompts.push_back({2, 2}); // ends
    if (many) {
        prompts.insert(prompts.end(), conversations.begin(), conversations.end());
        prompts.push_back({0}); // unknown
        prompts.push_back(random_prompt(97, 4096, 7));
    }
    return prompts;
}

} // namespace auspex::test
