// Writes GGUF files into memory for tests, well formed unless told otherwise. Independent of the engine's own writer.
//
//     GgufBuilder file;
//     file.set("general.architecture", "llama").set("llama.block_count", 1u).set("tokens", std::vector{"a", "b"});
//     file.tensor("output_norm.weight", 0, {8}, std::string(32, '\0'));
//     folder.write("model.gguf", file.bytes());
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace auspex::test {

// A number as the file holds it: lowest byte first.
template <typename T>
requires std::is_arithmetic_v<T> std::string le(T value) {
    uint64_t bits = 0;
    if constexpr (std::same_as<T, float>)
        bits = std::bit_cast<uint32_t>(value);
    else if constexpr (std::same_as<T, double>)
        bits = std::bit_cast<uint64_t>(value);
    else
        bits = static_cast<uint64_t>(value);
    std::string out;
    for (size_t i = 0; i < sizeof(T); ++i)
        out += static_cast<char>(bits >> 8 * i & 0xff);
    return out;
}

// A text as the file holds it: its length, then its bytes.
inline std::string gguf_text(std::string_view text) {
    return le(uint64_t{text.size()}).append(text);
}

// GGUF's id for a C++ type.
template <typename T> constexpr uint32_t gguf_type_id() {
    if constexpr (std::same_as<T, bool>)
        return 7;
    else if constexpr (std::same_as<T, float>)
        return 6;
    else if constexpr (std::same_as<T, double>)
        return 12;
    else if constexpr (std::integral<T>)
        return (sizeof(T) == 8 ? 10u : sizeof(T) == 4 ? 4u : sizeof(T) == 2 ? 2u : 0u) + std::is_signed_v<T>;
    else
        return 8;
}

template <typename T> std::string gguf_value(const T& value) {
    if constexpr (std::is_arithmetic_v<T>)
        return le(value);
    else
        return gguf_text(value);
}

class GgufBuilder {
  public:
    uint32_t version = 3;
    uint64_t alignment = 32;                // of the data; set("general.alignment", …) is separate
    std::optional<uint64_t> n_entries = {}; // the count to claim instead of the true one
    std::optional<uint64_t> n_tensors = {};

    // Numbers by their C++ type (8u is u32), texts from anything a string_view takes; a second call replaces the value.
    template <typename T> GgufBuilder& set(std::string_view key, const T& value) {
        if constexpr (std::is_arithmetic_v<T>)
            return set_raw(key, gguf_type_id<T>(), le(value));
        else
            return set_raw(key, 8, gguf_text(value));
    }
    template <typename T> GgufBuilder& set(std::string_view key, const std::vector<T>& values) {
        std::string bytes = le(gguf_type_id<T>()) + le(uint64_t{values.size()});
        for (const auto& value : values)
            bytes += gguf_value<T>(value);
        return set_raw(key, 9, bytes);
    }
    GgufBuilder& set_raw(std::string_view key, uint32_t type_id, std::string value) {
        for (auto& entry : entries_)
            if (entry.first == key) {
                entry.second = le(type_id) + value;
                return *this;
            }
        return add_raw(key, type_id, std::move(value));
    }
    // Never replaces: for duplicates, and for very many keys.
    GgufBuilder& add_raw(std::string_view key, uint32_t type_id, std::string value) {
        entries_.emplace_back(std::string(key), le(type_id) + std::move(value));
        return *this;
    }
    void erase(std::string_view key) {
        std::erase_if(entries_, [&](const auto& entry) { return entry.first == key; });
    }

    // `type` is ggml's id (0 f32, 1 f16, 30 bf16, 8 q8_0 …), the shape has the slowest dimension first. The data of
    // tensors follow each other, padded to the alignment.
    GgufBuilder& tensor(std::string_view name, uint32_t type, const std::vector<uint64_t>& shape,
                        std::string_view data) {
        data_.resize((data_.size() + alignment - 1) / alignment * alignment);
        tensor_at(name, type, shape, data_.size());
        data_ += data;
        return *this;
    }
    // An entry of the tensor list that claims an offset; brings no data of its own.
    GgufBuilder& tensor_at(std::string_view name, uint32_t type, const std::vector<uint64_t>& shape, uint64_t offset) {
        std::string info = gguf_text(name) + le(static_cast<uint32_t>(shape.size()));
        for (size_t i = shape.size(); i-- > 0;)
            info += le(shape[i]);
        tensors_.push_back(info + le(type) + le(offset));
        return *this;
    }
    GgufBuilder& data(std::string_view bytes) {
        data_ += bytes;
        return *this;
    }

    // Everything before the padding in front of the data.
    std::string header() const {
        std::string out =
            "GGUF" + le(version) + le(n_tensors.value_or(tensors_.size())) + le(n_entries.value_or(entries_.size()));
        for (const auto& [key, value] : entries_)
            out += gguf_text(key) + value;
        for (const std::string& info : tensors_)
            out += info;
        return out;
    }
    std::string bytes() const {
        std::string out = header();
        out.resize((out.size() + alignment - 1) / alignment * alignment);
        return out + data_;
    }

  private:
    std::vector<std::pair<std::string, std::string>> entries_; // key; type id and value
    std::vector<std::string> tensors_;
    std::string data_;
};

} // namespace auspex::test
