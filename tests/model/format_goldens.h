// The seeded models through our readers and the double reference, against transformers' logits: a folder and a GGUF
// file.
#pragma once

#include "model/model_files.h"
#include "model/reference_checkpoint.h"
#include "model/seeded_model.h"

namespace auspex::test {

inline void expect_golden_logits(const Checkpoint& checkpoint, const nlohmann::json& golden, double tolerance) {
    const auto logits = reference_model(checkpoint, false).forward(seeded_tokens(golden));
    double worst = 0;
    for (const auto& [row, expected] : golden["logits"].items()) {
        const auto& ours = logits.at(std::stoul(row));
        ASSERT_EQ(ours.size(), expected.size());
        for (size_t i = 0; i < ours.size(); ++i)
            worst = std::max(worst, std::abs(ours[i] - expected[i].get<double>()));
    }
    EXPECT_LE(worst, tolerance) << checkpoint.name();
    ::testing::Test::RecordProperty("worst_logit_error", std::to_string(worst));
}

// The same model as llama.cpp's converter would write it: scaling as keys (linear) or divisors (llama3).
inline GgufModel seeded_gguf(const Checkpoint& folder) {
    GgufModel model = gguf_model(folder);
    const LlamaConfig& c = folder.config();
    if (c.rope_scaling.kind == RopeScaling::Kind::linear)
        model.keys.set("llama.rope.scaling.type", "linear").set("llama.rope.scaling.factor", c.rope_scaling.factor);
    if (c.rope_scaling.kind == RopeScaling::Kind::llama3) {
        std::string data;
        for (double divisor : reference_divisors(c))
            data += le(static_cast<float>(divisor));
        model.parts.push_back({"rope_freqs.weight", 0, {c.head_dim / 2}, data});
    }
    return model;
}

inline void compare_with_golden(const nlohmann::json& golden) {
    SCOPED_TRACE(golden["name"].get<std::string>());
    TempFolder folder;
    write_seeded_folder(folder, golden);
    const auto huggingface = open_checkpoint(folder.path());
    ASSERT_TRUE(huggingface.ok()) << huggingface.status().message();
    // Both sides are float64, except transformers' norms, which are float32.
    expect_golden_logits(*huggingface.value(), golden, 1e-5);
    folder.write("model.gguf", seeded_gguf(*huggingface.value()).bytes());
    const auto gguf = open_checkpoint(folder.file("model.gguf"));
    ASSERT_TRUE(gguf.ok()) << gguf.status().message();
    // Divisors are float32 there: angles at position 8300 are off by up to 5e-4 radians.
    const bool divisors = !gguf.value()->config().rope_divisors.empty();
    expect_golden_logits(*gguf.value(), golden, divisors ? 1e-3 : 1e-5);
}

} // namespace auspex::test
