// Rows that hang together as a tree: each node's logits, penalties, cut and noise are those of its own text, whatever lies beside it.
// A chain is the tree in which each node follows the one before.
#include "kernels/rows.h"
#include "kernels/transforms.h"
#include "model/forward_rig.h"
#include "model/reference_checkpoint.h"
#include "reference/transforms.h"
#include "session/engine_fixture.h"
#include "shared/philox.h"
#include "shared/rows_args.h"
#include "test_shaders.h"

#include <cmath>

namespace auspex::tree_test {
namespace {

using namespace test;

constexpr uint32_t kVocab = 131, kKnown = 38; // tokens before the drafts: the last one is node 0
constexpr uint32_t kNoParent = ~0u;

struct Node {
    uint32_t parent, token;
};

// Rows of the nodes of one entry in slot 0: own keys lie one after another, whatever their positions.
std::vector<gpu::Row> tree_rows(const std::vector<Node>& nodes, uint32_t start) {
    std::vector<gpu::Row> rows;
    for (uint32_t i = 0; i < nodes.size(); ++i) {
        gpu::Row row = plain_row(nodes[i].token, 0, start);
        std::vector<uint32_t> path = {start + i}; // from the node up
        for (uint32_t at = nodes[i].parent; at != kNoParent; at = nodes[at].parent) path.push_back(start + at);
        row.position = start + static_cast<uint32_t>(path.size()) - 1;
        row.kv_index = start + i;
        row.prefix_len = start;
        for (uint32_t depth = 0; depth < gpu::kMaxPath; ++depth) row.path[depth] = start + depth;
        std::copy(path.rbegin(), path.rend(), row.path);
        row.parent = nodes[i].parent == kNoParent ? gpu::kNoRow : nodes[i].parent;
        rows.push_back(row);
    }
    return rows;
}

class TreeTest : public GpuTest {
  protected:
    struct Found {
        std::vector<float> logits; // (nodes, vocab), penalties and biases included
        std::vector<gpu::Cut> cuts;
        std::vector<gpu::VocabChoice> choices;
    };

    void SetUp() override {
        GpuTest::SetUp();
        const Shape shape = {.d = 72, .heads = 3, .head_dim = 64, .ffn = 130, .vocab = kVocab, .scale = 0.1f};
        model_ = random_model(shape, 3, 256);
        known_ = random_prompt(kKnown, kVocab, 1);
        // Two branches after node 0, of which the second divides again; siblings share positions, and tokens come more than once.
        nodes_ = {{kNoParent, known_.back()}, {0, 17}, {1, 90}, {2, known_[5]}, {0, 90}, {4, 17}, {4, 23}, {6, 17}};
        settings_ = neutral_state();
        settings_.live = 1;
        settings_.temperature = 0.7f;
        settings_.repeat_penalty = 1.4f;
        settings_.presence_penalty = 0.3f;
        settings_.frequency_penalty = 0.2f;
        settings_.top_k = 40;
        settings_.acceptance = gpu::kAcceptCoupled;
        settings_.seed_low = 77;
        settings_.seed_high = 5;
    }
    std::unique_ptr<ForwardRig> rig(KernelLibrary& library) { return std::make_unique<ForwardRig>(device(), memory(), library, model_, cache_); }
    KernelLibrary& library() {
        if (!library_) library_ = std::move(KernelLibrary::create(device(), device_tuning(device().caps, cache_), "")).value();
        return *library_;
    }
    // All before the last token, as a text that is being generated.
    void read_text(ForwardRig& rig, const std::vector<uint32_t>& text) {
        rig.clear();
        std::vector<gpu::Row> rows;
        for (uint32_t i = 0; i + 1 < text.size(); ++i) rows.push_back(plain_row(text[i], 0, i));
        rig.pass(rows, PassKind::rows);
    }
    Found choose(ForwardRig& rig, KernelLibrary& library, const std::vector<gpu::Row>& rows, const std::vector<uint32_t>& text) {
        const auto n = static_cast<uint32_t>(rows.size());
        const Buffer state = upload(std::vector{settings_}), history = upload(text), biases = upload(std::vector<gpu::TokenBias>(gpu::kMaxBiases));
        const Buffer scratch = output<uint32_t>(n * truncate_words(kVocab)), cuts = output<gpu::Cut>(n), partials = output<gpu::VocabChoice>(n * vocab_chunks(kVocab)),
                     choices = output<gpu::VocabChoice>(n);
        Found found;
        found.logits = rig.pass(rows, PassKind::rows, [&](Recorder& to, BufferView logits, BufferView of) {
            Recorder with = {to.cmd, library};
            VocabShape shape = {.vocab = kVocab, .n_rows = n, .rows = of};
            shape.cuts = record_transforms(with, logits, {.state = state.view(), .history = history.view(), .target_rows = of,
                                                          .biases = biases.view(), .scratch = scratch.view(), .cuts = cuts.view()}, shape,
                                           {.edits_logits = true, .truncation = {.top_k = true}, .history_stride = static_cast<uint32_t>(text.size())});
            record_vocab_partials(with, logits, state.view(), partials.view(), shape);
            with.cmd.barrier();
            record_pick(with, partials.view(), choices.view(), n, kVocab, shape.cuts);
            with.cmd.barrier();
        });
        found.cuts = read<gpu::Cut>(cuts, n);
        found.choices = read<gpu::VocabChoice>(choices, n);
        return found;
    }
    std::vector<uint32_t> text_of(uint32_t node) const {
        std::vector<uint32_t> path;
        for (uint32_t at = node; nodes_[at].parent != kNoParent; at = nodes_[at].parent) path.push_back(nodes_[at].token);
        std::vector<uint32_t> text = known_;
        text.insert(text.end(), path.rbegin(), path.rend());
        return text;
    }
    // Nodes whose choice, cut or logits are not those of their own text as a plain row.
    std::vector<uint32_t> strays(KernelLibrary& library_of_tree) {
        auto r = rig(library());
        read_text(*r, known_);
        const Found tree = choose(*r, library_of_tree, tree_rows(nodes_, kKnown - 1), known_);
        std::vector<uint32_t> out;
        for (uint32_t i = 0; i < nodes_.size(); ++i) {
            const std::vector<uint32_t> text = text_of(i);
            read_text(*r, text);
            const Found alone = choose(*r, library(), {plain_row(text.back(), 0, static_cast<uint32_t>(text.size()) - 1)}, text);
            const bool same = same_bits({&tree.logits[i * kVocab], kVocab}, alone.logits) && std::memcmp(&tree.cuts[i], &alone.cuts[0], sizeof(gpu::Cut)) == 0 &&
                              std::memcmp(&tree.choices[i], &alone.choices[0], sizeof(gpu::VocabChoice)) == 0;
            if (!same) out.push_back(i);
        }
        return out;
    }

    DType cache_ = DType::f32;
    SyntheticModel model_;
    std::vector<uint32_t> known_;
    std::vector<Node> nodes_;
    gpu::SlotState settings_;

  private:
    std::unique_ptr<KernelLibrary> library_;
};

class Tree : public TreeTest, public ::testing::WithParamInterface<DType> {
  protected:
    void SetUp() override {
        TreeTest::SetUp();
        cache_ = GetParam();
    }
};

TEST_P(Tree, nodes_have_the_bits_of_their_own_texts) { EXPECT_EQ(strays(library()), std::vector<uint32_t>{}); }

TEST_F(TreeTest, planted_faults_are_caught) {
    for (const auto& [shader, fault] : {std::pair{"edit_logits", 3}, {"vocab_partials", 27}}) {
        auto faulty = KernelLibrary::create(device(), device_tuning(device().caps, cache_), "");
        ASSERT_TRUE(faulty.ok());
        for (const std::string& variant : {std::string(shader), std::string(shader) + ".subgroup"})
            if (const auto spirv = test_shader(variant + ".fault" + std::to_string(fault)); !spirv.empty()) faulty.value()->replace(variant, spirv);
        EXPECT_FALSE(strays(*faulty.value()).empty()) << shader << " with fault " << fault;
    }
}

TEST_P(Tree, nodes_agree_with_the_double_reference) {
    auto r = rig(library());
    read_text(*r, known_);
    const Found found = choose(*r, library(), tree_rows(nodes_, kKnown - 1), known_);
    reference::ReferenceLlama reference = reference_model(model_, cache_ == DType::f16);
    const reference::Transforms transforms = {double(settings_.repeat_penalty), double(settings_.presence_penalty), double(settings_.frequency_penalty), {}};
    for (uint32_t i = 0; i < nodes_.size(); ++i) {
        SCOPED_TRACE("node " + std::to_string(i));
        const std::vector<uint32_t> text = text_of(i);
        const auto given = reference.forward(text).back();
        const reference::Vector expected = reference::edit_logits({given.begin(), given.end()}, transforms, text);
        double spread = 0, best = -INFINITY;
        for (double logit : expected) spread += logit * logit;
        const double bound = std::sqrt(spread / kVocab) * (cache_ == DType::f16 ? 4e-3 : 6e-5); // twice a row's before penalties
        for (uint32_t id = 0; id < kVocab; ++id) {
            const float logit = found.logits[i * kVocab + id];
            ASSERT_NEAR(double(logit), expected[id], bound) << "token " << id;
            if (logit < found.cuts[i].logit || (logit == found.cuts[i].logit && id > found.cuts[i].last_id)) continue;
            const auto random = reference::philox({static_cast<uint32_t>(text.size()), gpu::kPurposeCoupled, 0, id / 4}, {settings_.seed_low, settings_.seed_high});
            best = std::max(best, expected[id] / double(settings_.temperature) - std::log(reference::exponential(random[id % 4])));
        }
        EXPECT_NEAR(double(found.choices[i].best), best, bound / double(settings_.temperature) + 1e-5);
    }
}

TEST_P(Tree, a_chain_given_as_parents_is_the_chain_of_a_round) {
    constexpr uint32_t kDraftLen = 5;
    std::vector<Node> chain = {{kNoParent, known_.back()}};
    gpu::SlotState state = settings_;
    state.target_len = kKnown - 1;
    state.last_token = known_.back();
    state.draft_len = state.n_proposed = kDraftLen;
    state.drafter = gpu::kDrafterNgram;
    state.max_context = 1000;
    for (uint32_t i = 0; i < kDraftLen; ++i) {
        state.proposed[i] = 7 * i + 3;
        chain.push_back({i, state.proposed[i]});
    }
    const Buffer batch = upload(std::vector<uint32_t>{0}), states = upload(std::vector{state}), history = upload(known_), slots = output<gpu::RoundSlot>(1);
    const Buffer made = output<gpu::Row>(kDraftLen + 1), draft = output<gpu::Row>(64), counts = output<uint32_t>(gpu::counts_words(1));
    run([&](Recorder& to) {
        record_rows(to, {.batch = batch.view(), .state = states.view(), .history = history.view(), .round_slots = slots.view(),
                         .target_rows = made.view(), .draft_rows = draft.view(), .counts = counts.view()}, {1, kDraftLen, kKnown, 1, 1, false, 1, 0});
    });
    const std::vector<gpu::Row> by_round = read<gpu::Row>(made, kDraftLen + 1), by_parents = tree_rows(chain, kKnown - 1);
    EXPECT_EQ(std::memcmp(by_round.data(), by_parents.data(), by_round.size() * sizeof(gpu::Row)), 0);
    auto r = rig(library());
    read_text(*r, known_);
    const Found one = choose(*r, library(), by_round, known_);
    read_text(*r, known_);
    const Found other = choose(*r, library(), by_parents, known_);
    EXPECT_TRUE(same_bits(one.logits, other.logits));
    EXPECT_EQ(std::memcmp(one.choices.data(), other.choices.data(), one.choices.size() * sizeof(gpu::VocabChoice)), 0);
}

INSTANTIATE_TEST_SUITE_P(, Tree, ::testing::Values(DType::f32, DType::f16), [](const auto& at) { return std::string(dtype_name(at.param)); });

} // namespace
} // namespace auspex::tree_test
