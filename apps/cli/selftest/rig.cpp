// Runs questions through an engine and compares texts.
#include "cli/selftest/rig.h"

#include <algorithm>

namespace auspex::cli {

namespace {

uint32_t call_host_drafter(void* user_data, const uint32_t* tokens, size_t count, uint32_t max_drafts,
                           uint32_t* drafts) {
    const auto& drafter = *static_cast<const HostDrafter*>(user_data);
    const std::vector<uint32_t> proposed = drafter({tokens, tokens + count}, max_drafts);
    const size_t n = std::min<size_t>(proposed.size(), max_drafts);
    std::copy_n(proposed.begin(), n, drafts);
    return static_cast<uint32_t>(n);
}

ModelOptions without_files(const ModelOptions& models, uint32_t context) {
    ModelOptions options;
    options.device = models.device;
    options.context = context;
    options.cache_type = AUSPEX_CACHE_F32;
    return options;
}

auspex_synthetic_models shapes_of(const SyntheticPair& pair) {
    auspex_synthetic_models shapes;
    auspex_synthetic_models_init(&shapes, sizeof shapes);
    shapes.target = pair.target;
    shapes.draft = pair.draft;
    shapes.target.max_position = shapes.draft.max_position = pair.context;
    return shapes;
}

} // namespace

auspex_sequence_desc describe(const Question& question) {
    auspex_sequence_desc desc;
    auspex_sequence_desc_init(&desc, sizeof desc);
    if (!question.prompt.empty()) {
        desc.prompt_tokens = question.prompt.data();
        desc.prompt_token_count = question.prompt.size();
    }
    desc.max_tokens = question.n_tokens;
    desc.temperature = question.temperature;
    desc.seed = question.seed;
    desc.draft_len = question.draft_len;
    desc.ignore_eos = 1;
    desc.drafter = question.draft_len == 0 ? AUSPEX_DRAFTER_NONE : question.drafter;
    desc.acceptance = question.acceptance;
    desc.lenience = question.lenience;
    desc.biases = question.biases.data();
    desc.bias_count = question.biases.size();
    if (desc.drafter == AUSPEX_DRAFTER_HOST) {
        desc.host_drafter = call_host_drafter;
        desc.host_drafter_user_data = const_cast<HostDrafter*>(question.host_drafter);
    }
    return desc;
}

void drive(Client& client) {
    while (!client.step())
        client.wait();
}

std::vector<Answer> answer(Client& client, const std::vector<Question>& questions, uint32_t n_slots) {
    std::vector<Answer> answers;
    while (answers.size() < questions.size()) {
        const size_t n = std::min<size_t>(n_slots, questions.size() - answers.size());
        std::vector<auspex_sequence> sequences;
        for (size_t i = 0; i < n; ++i)
            sequences.push_back(client.create(describe(questions[answers.size() + i])));
        drive(client);
        for (const auspex_sequence sequence : sequences) {
            std::vector<auspex_token> tokens;
            std::string ignored;
            client.read(sequence, tokens, ignored);
            Answer& next = answers.emplace_back(Answer{{}, client.stats(sequence)});
            for (const auspex_token& token : tokens)
                next.tokens.push_back(token.id);
            client.destroy(sequence);
        }
    }
    return answers;
}

void Comparison::add(const Answer& found, const std::vector<uint32_t>& expected, const std::string& setting) {
    n_texts += 1;
    n_tokens += found.tokens.size();
    draft_n += found.stats.draft_n;
    draft_n_accepted += found.stats.draft_n_accepted;
    if (found.tokens == expected) return;
    n_different += 1;
    if (!first_difference.empty()) return;
    const auto at = std::mismatch(found.tokens.begin(), found.tokens.end(), expected.begin(), expected.end());
    const size_t index = static_cast<size_t>(at.first - found.tokens.begin());
    first_difference = index < std::min(found.tokens.size(), expected.size())
                           ? format("token %zu is %u, expected %u", index, *at.first, *at.second)
                           : format("%zu tokens, expected %zu", found.tokens.size(), expected.size());
    first_difference += ", with " + setting;
}

std::string Comparison::figure(const std::string& when_equal) const {
    if (n_different > 0) return format("%u of %u texts differ: ", n_different, n_texts) + first_difference;
    return when_equal + format("; %llu of %llu drafts accepted", static_cast<unsigned long long>(draft_n_accepted),
                               static_cast<unsigned long long>(draft_n));
}

std::vector<std::pair<std::string, double>> Comparison::measured() const {
    return {{"texts", n_texts},
            {"different", n_different},
            {"tokens", static_cast<double>(n_tokens)},
            {"draft_n", static_cast<double>(draft_n)},
            {"draft_n_accepted", static_cast<double>(draft_n_accepted)}};
}

auspex_synthetic_shape tiny_shape(uint32_t vocab_size, uint32_t n_layers, uint64_t seed) {
    auspex_synthetic_shape shape{};
    shape.hidden_size = 40;
    shape.n_layers = n_layers;
    shape.n_heads = 2;
    shape.n_kv_heads = 1;
    shape.head_dim = 32;
    shape.ffn_size = 50;
    shape.vocab_size = vocab_size;
    shape.dtype = 0;
    shape.seed = seed;
    shape.scale = 0.25f;
    return shape;
}

SyntheticClient::SyntheticClient(const ModelOptions& models, const SyntheticPair& pair)
    : options_(without_files(models, pair.context)), shapes_(shapes_of(pair)),
      client_({options_, &shapes_, pair.n_slots, pair.max_draft_len}) {}

std::vector<uint32_t> random_prompt(uint32_t n, uint32_t vocab_size, uint64_t seed) {
    std::vector<uint32_t> ids;
    uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
    for (uint32_t i = 0; i < n; ++i) {
        state = state * 6364136223846793005u + 1442695040888963407u; // Knuth's MMIX generator
        ids.push_back(static_cast<uint32_t>((state >> 33) % vocab_size));
    }
    return ids;
}

} // namespace auspex::cli
