// One recorded round by itself, without the scheduler: slots with different draft_len, lag, room and temperature in one
// batch, and what the round reports and leaves behind. Target and draft are the same model, so every draft is accepted.
#include "prefill/prefill.h"
#include "round/round.h"
#include "session/engine_fixture.h"
#include "session/gpu_contents.h"

#include <map>

namespace auspex::round_test {
namespace {

using namespace test;

constexpr uint32_t kVocab = 113, kSlots = 8, kContext = 64;

// An engine's models and buffers, driven by hand.
class RoundByHand : public ::testing::Test {
  protected:
    void SetUp() override {
        EngineDesc desc;
        desc.target_synthetic = desc.draft_synthetic = random_model({.d = 72, .heads = 3, .ffn = 50, .vocab = kVocab}, 4);
        desc.max_sequences = kSlots;
        desc.max_context = kContext;
        engine_ = make_engine(desc);
        ASSERT_TRUE(engine_);
        memory_ = std::make_unique<MemoryPool>(engine_->device());
        auto make = [&](Buffer& buffer, uint64_t bytes) {
            buffer = memory_->create(bytes, MemoryUse::readback).value();
            std::memset(buffer.mapped(), 0xee, buffer.size());
        };
        turn_.max_commands = 4096;
        make(turn_.batch, kSlots * 4);
        make(turn_.count, 4);
        make(turn_.commands, turn_.max_commands * sizeof(gpu::SlotCommand));
        make(turn_.list, kContext * 8);
        make(turn_.records, kSlots * sizeof(gpu::RoundRecord));
        make(rows_, kContext * sizeof(gpu::Row));
        make(counts_, 12);
    }

    // A slot that holds `text`, its last token not evaluated, and `draft_rows` rows in the draft cache.
    void fill(uint32_t slot, const std::vector<uint32_t>& text, uint32_t draft_rows, const gpu::SlotState& changes) {
        CommandWriter writer(turn_.max_commands);
        for (ModelRole of : kModelRoles) {
            std::vector<PageChange> changed;
            PageList& pages = pages_.try_emplace({slot, of}, models().of(of)->cache().new_list()).first->second;
            ASSERT_TRUE(pages.grow(kContext, changed).ok());
            writer.pages(of, slot, changed);
        }
        gpu::SlotState state = changes;
        state.last_token = text.back();
        state.target_len = static_cast<uint32_t>(text.size()) - 1;
        state.draft_cache_len = draft_rows;
        writer.state(slot, state);
        writer.history(slot, 0, text);
        writer.flush(turn_);
        run([&](Recorder& to) { record_commands(to, models(), engine_->buffers(), turn_); });
        read(engine_->target(), slot, state.target_len);
        read(*engine_->draft(), slot, draft_rows);
    }

    std::unique_ptr<Recording> record(uint32_t batch, uint32_t draft_len, uint32_t n_slices = 0) {
        auto made = Recording::create(engine_->device(), 64);
        EXPECT_TRUE(made.ok());
        Recorder to = {*made.value(), engine_->kernels()};
        record_round(to, {models(), engine_->buffers(), turn_, {.draft_len = draft_len, .batch = batch, .model_drafts = draft_len > 0}, n_slices});
        EXPECT_TRUE(made.value()->finish().ok());
        return std::move(made).value();
    }

    std::vector<gpu::RoundRecord> round(const std::vector<uint32_t>& batch, uint32_t draft_len) {
        return play(*record(static_cast<uint32_t>(batch.size()), draft_len), batch);
    }

    std::vector<gpu::RoundRecord> play(const Recording& recording, const std::vector<uint32_t>& batch) {
        std::memcpy(turn_.batch.mapped(), batch.data(), batch.size() * 4);
        CommandWriter(turn_.max_commands).flush(turn_);
        submit_and_wait(engine_->device(), recording);
        std::vector<gpu::RoundRecord> records(batch.size());
        std::memcpy(records.data(), turn_.records.mapped(), records.size() * sizeof records[0]);
        return records;
    }

    // What the model says next, by plain rounds in a slot of its own.
    std::vector<uint32_t> continuation(uint32_t slot, const std::vector<uint32_t>& text, uint32_t n) {
        fill(slot, text, 0, state(0));
        std::vector<uint32_t> tokens;
        while (tokens.size() < n) tokens.push_back(round({slot}, 0)[0].tokens[0]);
        return tokens;
    }

    static gpu::SlotState state(uint32_t draft_len, float temperature = 0, uint32_t max_context = kContext, uint32_t max_generated = ~0u) {
        gpu::SlotState s = {};
        s.repeat_penalty = s.top_p = s.lenience = 1;
        s.drafter = gpu::kDrafterModel;
        s.live = 1;
        s.draft_len = draft_len;
        s.max_generated = max_generated;
        s.max_context = max_context;
        s.seed_low = 99;
        s.temperature = temperature;
        return s;
    }

    std::unique_ptr<Engine> engine_;

  private:
    RoundModels models() { return {engine_->target(), engine_->draft()}; }
    void read(LlamaModel& model, uint32_t slot, uint32_t n_rows) {
        if (n_rows == 0) return;
        for (uint32_t position = 0; position < n_rows; ++position) {
            const uint32_t entry[2] = {slot, position};
            std::memcpy(turn_.list.mapped() + position * 8, entry, 8);
        }
        run([&](Recorder& to) {
            record_replay(to, model, {turn_.list.view(), engine_->buffers().history.view(), rows_.view(), counts_.view()}, n_rows, PassKind::rows, n_rows, kContext);
        });
    }
    void run(const std::function<void(Recorder&)>& record) {
        run_recorded(engine_->device(), [&](Recording& cmd) {
            Recorder to = {cmd, engine_->kernels()};
            record(to);
        });
    }
    std::unique_ptr<MemoryPool> memory_;
    TurnBuffers turn_;
    Buffer rows_, counts_;
    std::map<std::pair<uint32_t, ModelRole>, PageList> pages_;
};

TEST_F(RoundByHand, ragged_slots_in_one_batch) {
    const auto text = random_prompt(20, kVocab, 1);
    const auto next = continuation(7, text, 9);
    ASSERT_FALSE(HasFatalFailure());
    struct Slot {
        uint32_t draft_rows;
        gpu::SlotState state;
        uint32_t draft_len, n_tokens, stop, draft_cache_len; // expected
    };
    const std::vector<Slot> slots = {
        {19, state(4), 4, 5, gpu::kStopNone, 23},                   // in step
        {18, state(4), 4, 5, gpu::kStopNone, 23},                   // one row behind: the first pass carries it
        {17, state(4), 0, 1, gpu::kStopNone, 17},                   // two behind: no drafts
        {19, state(2), 2, 3, gpu::kStopNone, 21},                   // asks for fewer
        {19, state(0), 0, 1, gpu::kStopNone, 19},                   // asks for none
        {19, state(8, 0, 23), 2, 3, gpu::kStopContext, 21},         // room for three tokens
        {19, state(8, 0, kContext, 2), 6, 2, gpu::kStopLength, 21}, // two tokens end it, the round stays as long
    };
    std::vector<uint32_t> batch;
    for (uint32_t i = 0; i < slots.size(); ++i) {
        fill(i, text, slots[i].draft_rows, slots[i].state);
        batch.push_back(i);
    }
    ASSERT_FALSE(HasFatalFailure());
    batch.insert(batch.begin() + 3, gpu::kNoSlot); // padding anywhere
    const auto records = round(batch, 6);
    EXPECT_EQ(records[3].live_before, 0u);
    EXPECT_EQ(records[3].n_tokens, 0u);
    for (uint32_t b = 0; b < batch.size(); ++b) {
        if (b == 3) continue;
        const Slot& slot = slots[batch[b]];
        const gpu::RoundRecord& record = records[b];
        EXPECT_EQ(record.slot, batch[b]);
        EXPECT_EQ(record.live_before, 1u);
        EXPECT_EQ(record.start, 19u);
        EXPECT_EQ(record.draft_len, slot.draft_len) << "slot " << batch[b];
        EXPECT_EQ(record.accepted_len, slot.draft_len) << "slot " << batch[b];
        ASSERT_EQ(record.n_tokens, slot.n_tokens) << "slot " << batch[b];
        EXPECT_EQ(record.stop_reason, slot.stop);
        EXPECT_EQ(record.draft_cache_len, slot.draft_cache_len) << "slot " << batch[b];
        EXPECT_TRUE(std::equal(record.tokens, record.tokens + record.n_tokens, next.begin())) << "slot " << batch[b];
        const gpu::SlotState after = slot_state(*engine_, batch[b]);
        EXPECT_EQ(after.live, slot.stop == gpu::kStopNone ? 1u : 0u);
        EXPECT_EQ(after.target_len, 19 + slot.n_tokens);
        EXPECT_EQ(after.last_token, next[slot.n_tokens - 1]);
        EXPECT_EQ(after.draft_cache_len, slot.draft_cache_len);
        EXPECT_EQ(after.n_generated, slot.n_tokens);
        const auto history = read_back<uint32_t>(engine_->device(), engine_->buffers().history.view((batch[b] * kContext + 20) * 4, slot.n_tokens * 4));
        EXPECT_TRUE(std::equal(history.begin(), history.end(), next.begin()));
    }
    // Finished slots have no rows; the others go on, whatever their lag is now.
    const auto again = round({5, 6, 0, 1}, 2);
    EXPECT_EQ(again[0].live_before + again[1].live_before, 0u);
    for (uint32_t b : {2u, 3u}) {
        EXPECT_EQ(again[b].draft_len, 2u);
        EXPECT_EQ(again[b].accepted_len, 2u);
        EXPECT_TRUE(std::equal(again[b].tokens, again[b].tokens + 3, next.begin() + 5));
    }
}

// Sampling slots of one batch draw alike only where seeds are alike.
TEST_F(RoundByHand, temperature_and_seed_belong_to_the_slot) {
    const auto text = random_prompt(12, kVocab, 3);
    for (uint32_t slot = 0; slot < 4; ++slot) {
        gpu::SlotState s = state(3, slot == 3 ? 0.0f : 2.0f);
        s.seed_high = slot == 2 ? 5 : 0;
        fill(slot, text, 11, s);
    }
    ASSERT_FALSE(HasFatalFailure());
    std::vector<std::vector<uint32_t>> texts(4);
    for (int i = 0; i < 5; ++i) {
        const auto records = round({0, 1, 2, 3}, 3);
        for (uint32_t b = 0; b < 4; ++b) {
            EXPECT_EQ(records[b].accepted_len, 3u);
            texts[b].insert(texts[b].end(), records[b].tokens, records[b].tokens + records[b].n_tokens);
        }
    }
    EXPECT_EQ(texts[0], texts[1]);
    EXPECT_NE(texts[0], texts[2]);
    EXPECT_EQ(texts[3], continuation(7, text, 20));
}

// The same text in three slots: recorded anew for every round, recorded once, and recorded once in segments.
TEST_F(RoundByHand, used_and_sliced_recordings_give_the_bits_of_fresh_ones) {
    const auto text = random_prompt(17, kVocab, 6);
    for (uint32_t slot : {0u, 1u, 2u}) fill(slot, text, 15, state(4, 1.5f));
    ASSERT_FALSE(HasFatalFailure());
    const auto whole = record(1, 4), sliced = record(1, 4, 2);
    EXPECT_EQ(whole->n_segments(), 1u);
    // Four drafts of a layer, a layer and a head; the target's two layers, its head; the rest.
    EXPECT_EQ(sliced->n_segments(), 4 * 3 + 3 + 1u);
    for (int i = 0; i < 6; ++i) {
        const gpu::RoundRecord fresh = round({0}, 4)[0];
        for (uint32_t slot : {1u, 2u}) {
            const gpu::RoundRecord again = play(slot == 1 ? *whole : *sliced, {slot})[0];
            ASSERT_EQ(again.n_tokens, fresh.n_tokens) << "slot " << slot << ", round " << i;
            EXPECT_EQ(again.accepted_len, fresh.accepted_len);
            EXPECT_TRUE(std::equal(fresh.tokens, fresh.tokens + fresh.n_tokens, again.tokens)) << "slot " << slot << ", round " << i;
        }
    }
    const uint32_t n_rows = slot_state(*engine_, 0).target_len;
    EXPECT_GT(n_rows, 30u);
    for (LlamaModel* model : {&engine_->target(), engine_->draft()})
        for (uint32_t slot : {1u, 2u}) EXPECT_EQ(cache_rows(*engine_, *model, slot, n_rows - 5), cache_rows(*engine_, *model, 0, n_rows - 5)) << "slot " << slot;
}

} // namespace
} // namespace auspex::round_test
