// Reads one JSON string per line and writes its token ids, one line each; tests/peers/tokenizers_compare.py runs it.
// tokenize_lines MODEL [--controls]: with it, spellings of control tokens become those tokens.
#include "tokens/tokenizer.h"

#include <nlohmann/json.hpp>

#include <chrono>
#include <iostream>

int main(int argc, char** argv) {
    const bool controls = argc == 3 && std::string_view(argv[2]) == "--controls";
    if (argc != 2 && !controls) {
        std::cerr << "tokenize_lines MODEL [--controls] < lines\n";
        return 2;
    }
    const auto tokenizer = auspex::open_tokenizer(argv[1]);
    if (!tokenizer.ok()) {
        std::cerr << tokenizer.status().message() << '\n';
        return 1;
    }
    std::ios::sync_with_stdio(false);
    std::string line;
    size_t n_bytes = 0;
    std::chrono::steady_clock::duration spent = {};
    while (std::getline(std::cin, line)) {
        const auto text = nlohmann::json::parse(line, nullptr, false);
        if (!text.is_string()) {
            std::cerr << "not a JSON string: " << line << '\n';
            return 2;
        }
        const auto& bytes = text.get_ref<const std::string&>();
        const auto begin = std::chrono::steady_clock::now();
        const auto ids = controls ? tokenizer.value()->encode_with_controls(bytes) : tokenizer.value()->encode(bytes);
        spent += std::chrono::steady_clock::now() - begin;
        n_bytes += bytes.size();
        if (!ids.ok()) {
            std::cerr << ids.status().message() << '\n';
            return 1;
        }
        const char* separator = "";
        for (uint32_t id : ids.value()) {
            std::cout << separator << id;
            separator = " ";
        }
        std::cout << '\n';
    }
    std::cerr << n_bytes << " bytes, "
              << static_cast<double>(n_bytes) / 1e6 / std::chrono::duration<double>(spent).count() << " MB/s\n";
    return 0;
}
