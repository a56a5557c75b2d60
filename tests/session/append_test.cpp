// Sequences that go on after their end: nothing is read twice, every row keeps the path it took, drafts are caught up over
// whatever came before, and rounds that were under way when a sequence was cancelled leave no trace.
#include "session/gpu_contents.h"
#include "session/prompts.h"

namespace auspex::append_test {
namespace {

using namespace test;

constexpr uint32_t kVocab = 203;

EngineDesc pair(uint32_t slots, uint32_t context, uint64_t draft_seed, DType cache = DType::f16) {
    const Shape shape = {.d = 72, .layers = 2, .heads = 3, .ffn = 100, .vocab = kVocab, .scale = 0.3f};
    EngineDesc desc;
    desc.target_synthetic = random_model(shape, 5, 1024);
    desc.draft_synthetic = random_model(shape, draft_seed, 1024);
    desc.max_sequences = slots;
    desc.max_context = context;
    desc.cache_dtype = cache;
    desc.adjust_tuning = [](Tuning& tuning) { tuning.prompt_by_rows = false; }; // two families in one cache
    return desc;
}

struct Part {
    uint32_t prompt_n;
    uint32_t max_tokens;
    uint32_t draft_len = 0;
};
std::vector<uint32_t> prompt_of(const Part& part, size_t index) {
    return random_prompt(part.prompt_n, kVocab, 100 * index + part.prompt_n);
}
SequenceRequest request_of(const Part& part, size_t index, float temperature = 0) {
    return {prompt_of(part, index), part.max_tokens, {temperature, 9 + index}, part.draft_len, true};
}

// The first part begins a sequence, the others are appended when the one before has ended. Ids only.
uint64_t converse(Engine& engine, const std::vector<Part>& parts, float temperature = 0, std::vector<Answer>* answers = nullptr) {
    uint64_t id = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
        if (i == 0) {
            auto made = engine.create_sequence(request_of(parts[i], i, temperature));
            EXPECT_TRUE(made.ok()) << made.status().message();
            if (!made.ok()) return 0;
            id = made.value();
        } else {
            const Status status = engine.append_sequence(id, request_of(parts[i], i, temperature));
            EXPECT_TRUE(status.ok()) << status.message();
        }
        drive(engine);
        if (::testing::Test::HasFatalFailure()) return id;
        if (answers) answers->push_back(answer_of(engine, id));
        find_sequence(engine, id)->output.clear();
    }
    return id;
}

// Both caches and the text of one sequence.
struct Remains {
    std::vector<uint32_t> tokens;
    std::vector<std::byte> target, draft;
};
Remains remains_of(Engine& engine, uint64_t id, uint32_t draft_rows) {
    const LiveSequence& sequence = *find_sequence(engine, id);
    EXPECT_EQ(sequence.target_len + 1, sequence.tokens.size());
    const gpu::SlotState state = slot_state(engine, sequence.slot->number);
    EXPECT_EQ(state.target_len, sequence.target_len);
    EXPECT_EQ(state.draft_cache_len, sequence.draft_rows);
    EXPECT_EQ(state.last_token, sequence.tokens.back());
    return {sequence.tokens, cache_rows(engine, engine.target(), sequence.slot->number, sequence.target_len), cache_rows(engine, *engine.draft(), sequence.slot->number, draft_rows)};
}
void expect_same(Engine& engine, const Remains& found, const Remains& expected, const std::string& what) {
    EXPECT_EQ(found.tokens, expected.tokens) << what;
    EXPECT_EQ(first_difference(engine.target().cache().shape(), found.target, expected.target), "") << what << ", target";
    EXPECT_EQ(first_difference(engine.draft()->cache().shape(), found.draft, expected.draft), "") << what << ", draft";
}

TEST(PromptRowsTest, ranges_join_and_end) {
    PromptRows rows;
    EXPECT_FALSE(rows.contains(0));
    EXPECT_EQ(rows.end_of_path(0), ~0u);
    rows.add(0, 0);
    rows.add(0, 4);
    rows.add(4, 6);
    rows.add(9, 10);
    for (uint32_t row = 0; row < 12; ++row) EXPECT_EQ(rows.contains(row), row < 6 || row == 9) << row;
    EXPECT_EQ(rows.end_of_path(0), 6u);
    EXPECT_EQ(rows.end_of_path(5), 6u);
    EXPECT_EQ(rows.end_of_path(6), 9u);
    EXPECT_EQ(rows.end_of_path(9), 10u);
    EXPECT_EQ(rows.end_of_path(10), ~0u);
}

// Parts of a prompt that only wait for each other are one prompt, bit for bit, read or not when the next one comes.
TEST(Append, held_parts_are_one_prompt) {
    auto engine = make_engine(pair(2, 400, 6));
    ASSERT_TRUE(engine);
    for (bool read_between : {true, false})
        for (float temperature : {0.0f, 1.0f})
            for (uint32_t draft_len : {read_between == (temperature > 0) ? 4u : 0u}) {
                const std::vector<Part> parts = {{.prompt_n = 21, .max_tokens = kHoldTokens, .draft_len = draft_len},
                                                 {.prompt_n = 1, .max_tokens = kHoldTokens, .draft_len = 0},
                                                 {.prompt_n = 80, .max_tokens = kHoldTokens, .draft_len = draft_len},
                                                 {.prompt_n = 2, .max_tokens = 40, .draft_len = draft_len}};
                std::vector<uint32_t> whole;
                uint64_t id = 0;
                for (size_t i = 0; i < parts.size(); ++i) {
                    const auto prompt = prompt_of(parts[i], i);
                    whole.insert(whole.end(), prompt.begin(), prompt.end());
                    SequenceRequest request = request_of(parts[i], i, temperature);
                    if (i == 0) id = engine->create_sequence(request).value();
                    else ASSERT_TRUE(engine->append_sequence(id, request).ok());
                    if (read_between) drive(*engine);
                }
                drive(*engine);
                ASSERT_FALSE(HasFatalFailure());
                auto fresh = engine->create_sequence({whole, 40, {temperature, 9 + 3}, draft_len, true});
                drive(*engine);
                const LiveSequence& expected = *find_sequence(*engine, fresh.value());
                EXPECT_EQ(find_sequence(*engine, id)->prompt_n, 104u);
                expect_same(*engine, remains_of(*engine, id, expected.draft_rows), remains_of(*engine, fresh.value(), expected.draft_rows),
                            "draft_len " + std::to_string(draft_len));
                for (uint64_t one : {id, fresh.value()}) ASSERT_TRUE(destroy_sequence(*engine, one).ok());
            }
}

// Going on without new tokens is a longer answer.
TEST(Append, nothing_appended_goes_on) {
    auto engine = make_engine(pair(2, 400, 6));
    ASSERT_TRUE(engine);
    for (uint32_t draft_len : {0u, 1u, 4u, 8u})
        for (float temperature : {0.0f, 1.0f}) {
            if (temperature > 0 && draft_len > 0) continue; // rounds begin elsewhere, and with them the random numbers
            const Answer longer = run_job(*engine, {.prompt = random_prompt(30, kVocab, 1), .max_tokens = 90, .draft_len = draft_len, .temperature = temperature, .seed = 4});
            auto id = engine->create_sequence({random_prompt(30, kVocab, 1), 30, {temperature, 4}, draft_len, true});
            drive(*engine);
            for (uint32_t n : {1u, 20u, kHoldTokens, 39u}) {
                ASSERT_TRUE(engine->append_sequence(id.value(), {{}, n, {temperature, 4}, draft_len, true}).ok());
                drive(*engine);
                ASSERT_FALSE(HasFatalFailure());
                EXPECT_EQ(find_sequence(*engine, id.value())->prefilled_n, 0u);
            }
            const auto& tokens = find_sequence(*engine, id.value())->tokens;
            EXPECT_EQ(std::vector<uint32_t>(tokens.begin() + 30, tokens.end()), longer.tokens) << "draft_len " << draft_len;
            ASSERT_TRUE(destroy_sequence(*engine, id.value()).ok());
        }
}

struct TwinCase {
    const char* name;
    DType cache;
    float temperature;
};
class AppendedTwins : public ::testing::TestWithParam<TwinCase> {};

// Draft = target: every draft is accepted for ever, and both caches hold the same bits, whichever turns were plain and
// left the draft behind across the borders of several parts.
TEST_P(AppendedTwins, every_draft_is_accepted) {
    auto engine = make_engine(pair(2, 900, 5, GetParam().cache));
    ASSERT_TRUE(engine);
    const std::vector<std::vector<Part>> conversations = {
        {{1, 9, 4}, {1, 20, 4}, {2, 21, 3}, {3, 5, 8}, {64, 33, 1}, {65, 40, 5}},
        {{70, 11, 0}, {5, 17, 0}, {1, 3, 0}, {30, 50, 4}, {0, 30, 4}, {9, 1, 0}, {2, 1, 0}, {17, 60, 7}},
        {{2, 30, 2}, {130, kHoldTokens, 0}, {7, 1, 3}, {1, 1, 3}, {1, 1, 3}, {1, 1, 0}, {1, 30, 3}},
        {{16, 16, 8}, {16, 16, 0}, {16, 17, 8}, {0, 5, 0}, {40, kHoldTokens, 2}, {3, 60, 8}},
    };
    for (size_t c = 0; c < conversations.size(); ++c) {
        std::vector<Answer> answers;
        const uint64_t id = converse(*engine, conversations[c], GetParam().temperature, &answers);
        ASSERT_FALSE(HasFatalFailure());
        for (size_t i = 0; i < answers.size(); ++i) {
            const Part& part = conversations[c][i];
            const std::string what = "conversation " + std::to_string(c) + ", part " + std::to_string(i);
            EXPECT_EQ(answers[i].n_of(TokenOrigin::correction), 0u) << what;
            EXPECT_EQ(answers[i].stats.draft_n, answers[i].stats.draft_n_accepted) << what;
            if (part.max_tokens != kHoldTokens) { EXPECT_EQ(answers[i].stats.rounds, (part.max_tokens + part.draft_len) / (part.draft_len + 1)) << what; }
        }
        const LiveSequence& sequence = *find_sequence(*engine, id);
        EXPECT_GE(sequence.draft_rows + 2, sequence.target_len);
        EXPECT_EQ(first_difference(engine->target().cache().shape(), cache_rows(*engine, engine->target(), sequence.slot->number, sequence.draft_rows),
                                   cache_rows(*engine, *engine->draft(), sequence.slot->number, sequence.draft_rows)), "") << "conversation " << c;
        ASSERT_TRUE(destroy_sequence(*engine, id).ok());
    }
}

INSTANTIATE_TEST_SUITE_P(model, AppendedTwins,
                         ::testing::Values(TwinCase{"greedy_f32", DType::f32, 0.0f}, TwinCase{"sampled_f16", DType::f16, 1.0f}),
                         [](const auto& at) { return at.param.name; });

// Greedy conversations are those without drafts, and a second engine that is given the same turns says the same.
TEST(Append, speculative_conversations_are_plain_ones) {
    auto engine = make_engine(pair(1, 600, 6)), other = make_engine(pair(3, 600, 6));
    ASSERT_TRUE(engine && other);
    std::vector<Part> parts = {{20, 15}, {3, 1}, {1, 2}, {2, 3}, {70, 20}, {1, 1}, {16, 16}, {33, 30}};
    std::vector<Answer> plain;
    const uint64_t plain_id = converse(*engine, parts, 0, &plain);
    const Remains expected = remains_of(*engine, plain_id, 0);
    ASSERT_TRUE(destroy_sequence(*engine, plain_id).ok());
    for (Engine* at : {engine.get(), other.get()})
        for (uint32_t draft_len : {0u, 1u, 4u, 8u}) {
            if (at == other.get() && draft_len % 4 != 0) continue;
            for (Part& part : parts) part.draft_len = draft_len;
            std::vector<Answer> found;
            const uint64_t id = converse(*at, parts, 0, &found);
            ASSERT_FALSE(HasFatalFailure());
            for (size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(found[i].tokens, plain[i].tokens) << "draft_len " << draft_len << ", part " << i;
            expect_same(*at, remains_of(*at, id, 0), expected, "draft_len " + std::to_string(draft_len));
            ASSERT_TRUE(destroy_sequence(*at, id).ok());
        }
}

// Where prompts go through the row family, a conversation has the bits of one prompt that holds everything said so far.
TEST(Append, a_conversation_is_one_text) {
    EngineDesc desc = bundled_pair(2, 480);
    desc.adjust_tuning = [](Tuning& tuning) { tuning.prompt_by_rows = true; };
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    const std::vector<std::string> said = {"Once upon a time there was a fox who", " Then the fox saw a bird. \"Hello,\" said", "."};
    for (uint32_t draft_len : {0u, 4u}) {
        std::vector<uint32_t> all;
        uint64_t id = 0;
        for (size_t i = 0; i < said.size(); ++i) {
            auto prompt = engine->tokenize(said[i], i == 0).value();
            SequenceRequest request = {prompt, 20, {}, draft_len, true};
            if (i == 0) id = engine->create_sequence(request).value();
            else ASSERT_TRUE(engine->append_sequence(id, request).ok());
            drive(*engine);
            ASSERT_FALSE(HasFatalFailure());
            all.insert(all.end(), prompt.begin(), prompt.end());
            const Answer fresh = run_job(*engine, {.prompt = all, .max_tokens = 20});
            const LiveSequence& sequence = *find_sequence(*engine, id);
            EXPECT_EQ(std::vector<uint32_t>(sequence.tokens.end() - 20, sequence.tokens.end()), fresh.tokens) << "draft_len " << draft_len << ", part " << i;
            EXPECT_EQ(sequence.prefilled_n, prompt.size() - (i == 0 ? 1 : 0)); // the last token said is evaluated by the first round
            all.insert(all.end(), fresh.tokens.begin(), fresh.tokens.end());
            EXPECT_EQ(sequence.tokens, all);
        }
        ASSERT_TRUE(destroy_sequence(*engine, id).ok());
    }
}

// What the caches held before is not touched: rows that are overwritten from outside stay so.
TEST(Append, nothing_is_read_twice) {
    auto engine = make_engine(pair(1, 300, 5));
    ASSERT_TRUE(engine);
    const uint64_t id = converse(*engine, {{40, 40, 4}});
    const LiveSequence& sequence = *find_sequence(*engine, id);
    const uint32_t kept = sequence.draft_rows;
    for (LlamaModel* model : {&engine->target(), engine->draft()})
        for (uint32_t layer = 0; layer < 2; ++layer)
            run_recorded(engine->device(), [&](Recording& cmd) {
                cmd.transfer_barrier();
                cmd.fill(model->cache().k(layer), 0x3c003c00); // 1.0 in f16
                cmd.transfer_barrier();
            });
    const auto target = cache_rows(*engine, engine->target(), sequence.slot->number, kept), draft = cache_rows(*engine, *engine->draft(), sequence.slot->number, kept);
    const uint64_t turns = engine->turns().last_number();
    ASSERT_TRUE(engine->append_sequence(id, request_of({10, 1, 3}, 1)).ok());
    drive(*engine);
    EXPECT_EQ(sequence.prefilled_n, 10u);
    EXPECT_LE(engine->turns().last_number() - turns, 5u); // target; draft's generated row, prompt; the round and one that was queued after it
    EXPECT_EQ(first_difference(engine->target().cache().shape(), cache_rows(*engine, engine->target(), sequence.slot->number, kept), target), "");
    EXPECT_EQ(first_difference(engine->draft()->cache().shape(), cache_rows(*engine, *engine->draft(), sequence.slot->number, kept), draft), "");
}

// Cancelled anywhere, with rounds under way or half submitted, and appended to at once: as if it had ended there by itself.
TEST(Append, after_cancel_in_flight) {
    auto engine = make_engine(pair(2, 300, 6)), clean = make_engine(pair(1, 300, 6));
    ASSERT_TRUE(engine && clean);
    uint32_t in_flight = 0;
    for (int run = 0; run < 20; ++run) {
        const Part begin = {run < 4 ? 70u : 20u, 40, 4}; // two replays of each model, or one
        const double budget_ms = run < 14 ? -1.0 : 0.001;
        const int steps = run < 14 ? 1 + run / 2 : 2 + run / 2 % 7 * 5;
        const Part next = {run % 2 ? 0u : 19u, 12, 3}; // nothing to read: the next round is queued after what is under way
        const uint64_t id = engine->create_sequence(request_of(begin, 0)).value();
        for (int i = 0; i < steps; ++i) {
            ASSERT_TRUE(step(*engine, budget_ms).ok());
            if (i + 1 < steps) { ASSERT_TRUE(engine->turns().wait(60'000'000'000).ok()); }
        }
        const LiveSequence& sequence = *find_sequence(*engine, id);
        in_flight += sequence.unread_rounds;
        ASSERT_TRUE(cancel_sequence(*engine, id).ok());
        const auto n = static_cast<uint32_t>(sequence.tokens.size()) - begin.prompt_n;
        ASSERT_TRUE(engine->append_sequence(id, request_of(next, 1)).ok());
        drive(*engine);
        ASSERT_FALSE(HasFatalFailure());
        EXPECT_EQ(sequence.stop, StopReason::length);
        EXPECT_EQ(sequence.n_generated(), 12u);
        const Remains found = remains_of(*engine, id, sequence.draft_rows);
        const uint32_t draft_rows = sequence.draft_rows;
        ASSERT_TRUE(destroy_sequence(*engine, id).ok());

        const uint64_t same = converse(*clean, {{begin.prompt_n, n == 0 ? kHoldTokens : n, begin.draft_len}, next});
        expect_same(*clean, found, remains_of(*clean, same, std::min(draft_rows, find_sequence(*clean, same)->draft_rows)), std::to_string(n) + " generated, run " + std::to_string(run));
        ASSERT_TRUE(destroy_sequence(*clean, same).ok());
    }
    EXPECT_GT(in_flight, 10u);
}

// Conversations side by side, of other lengths and draft_len, say what each says alone; and their pages come back.
TEST(Append, conversations_do_not_disturb_each_other) {
    auto engine = make_engine(pair(3, 400, 6));
    ASSERT_TRUE(engine);
    const uint32_t all_pages = engine->target().cache().n_free_pages(), all_draft_pages = engine->draft()->cache().n_free_pages();
    const std::vector<std::vector<Part>> parts = {{{5, 20, 4}, {9, 30, 4}, {1, 10, 4}, {30, 20, 4}},
                                                  {{60, 7, 0}, {2, 40, 0}, {3, 3, 2}, {10, 30, 2}},
                                                  {{1, 33, 1}, {17, 2, 3}, {66, 9, 0}, {1, 25, 6}}};
    std::vector<std::vector<uint32_t>> alone;
    for (const auto& conversation : parts) {
        const uint64_t id = converse(*engine, conversation);
        alone.push_back(find_sequence(*engine, id)->tokens);
        ASSERT_TRUE(destroy_sequence(*engine, id).ok());
    }
    std::vector<uint64_t> ids;
    std::vector<size_t> at(parts.size(), 1);
    for (size_t c = 0; c < parts.size(); ++c) ids.push_back(engine->create_sequence(request_of(parts[c][0], 0)).value());
    drive(*engine, [&] { // each goes on the moment it ends, while the others are under way
        for (size_t c = 0; c < parts.size(); ++c)
            if (find_sequence(*engine, ids[c])->stop != StopReason::none && at[c] < parts[c].size()) {
                EXPECT_TRUE(engine->append_sequence(ids[c], request_of(parts[c][at[c]], at[c])).ok());
                at[c] += 1;
                find_sequence(*engine, ids[c])->output.clear();
            }
        return false;
    });
    while (at[0] < 4 || at[1] < 4 || at[2] < 4) { // what ended in the very last step
        for (size_t c = 0; c < parts.size(); ++c)
            if (at[c] < 4) {
                EXPECT_TRUE(engine->append_sequence(ids[c], request_of(parts[c][at[c]], at[c])).ok());
                at[c] += 1;
            }
        drive(*engine);
        ASSERT_FALSE(HasFatalFailure());
    }
    for (size_t c = 0; c < parts.size(); ++c) {
        EXPECT_EQ(find_sequence(*engine, ids[c])->tokens, alone[c]) << "conversation " << c;
        ASSERT_TRUE(destroy_sequence(*engine, ids[c]).ok());
    }
    drive(*engine);
    EXPECT_EQ(engine->target().cache().n_free_pages(), all_pages);
    EXPECT_EQ(engine->draft()->cache().n_free_pages(), all_draft_pages);
}

// Forks of a conversation go on as it does, whether it was read to its end when they were asked for or not, and forks that
// are appended to before they were copied read only what is new.
TEST(Append, forks_of_conversations) {
    auto engine = make_engine(pair(5, 400, 6));
    ASSERT_TRUE(engine);
    for (bool read : {true, false})
        for (uint32_t draft_len : {0u, 3u}) {
            const uint64_t id = converse(*engine, {{18, 20, draft_len}, {31, 15, draft_len}});
            ASSERT_TRUE(engine->append_sequence(id, request_of({50, kHoldTokens, draft_len}, 2)).ok());
            if (read) drive(*engine);
            const SequenceRequest go_on = {{}, 30, {0, 3}, draft_len, true};
            const uint64_t fork = engine->fork_sequence(id, go_on).value();
            const uint64_t held = engine->fork_sequence(id, {{}, kHoldTokens, {0, 3}, draft_len, true}).value();
            ASSERT_TRUE(engine->append_sequence(held, request_of({7, kHoldTokens, draft_len}, 3)).ok());
            const uint64_t grandchild = engine->fork_sequence(held, go_on).value(); // of a fork that waits itself
            drive(*engine);
            ASSERT_TRUE(engine->append_sequence(id, go_on).ok());
            drive(*engine);
            ASSERT_TRUE(engine->append_sequence(held, go_on).ok());
            drive(*engine);
            ASSERT_FALSE(HasFatalFailure());
            const auto& find = [&](uint64_t one) -> const LiveSequence& { return *find_sequence(*engine, one); };
            EXPECT_EQ(find(fork).tokens, find(id).tokens) << read << draft_len;
            EXPECT_EQ(find(fork).prefilled_n, 0u);
            EXPECT_EQ(find(grandchild).tokens, find(held).tokens) << read << draft_len;
            EXPECT_EQ(find(held).tokens.size(), find(id).tokens.size() + 7);
            EXPECT_EQ(find(grandchild).prefilled_n, 7u);
            // The same turns in one sequence.
            const uint64_t straight = converse(*engine, {{18, 20, draft_len}, {31, 15, draft_len}, {50, kHoldTokens, draft_len}, {7, 30, draft_len}});
            const uint32_t draft_rows = std::min(find(straight).draft_rows, find(grandchild).draft_rows);
            expect_same(*engine, remains_of(*engine, grandchild, draft_rows), remains_of(*engine, straight, draft_rows), "grandchild");
            for (uint64_t one : {id, fork, held, grandchild, straight}) ASSERT_TRUE(destroy_sequence(*engine, one).ok());
            drive(*engine);
        }
}

TEST(Append, what_cannot_go_on_is_refused_and_stays) {
    auto engine = make_engine(pair(2, 64, 6));
    ASSERT_TRUE(engine);
    const Part part = {20, 10, 2};
    EXPECT_EQ(engine->append_sequence(77, request_of(part, 0)).code(), Code::invalid_argument);
    const uint64_t id = engine->create_sequence(request_of(part, 0)).value();
    EXPECT_EQ(engine->append_sequence(id, request_of(part, 0)).code(), Code::invalid_argument); // not begun
    ASSERT_TRUE(step(*engine, -1).ok());
    EXPECT_EQ(engine->append_sequence(id, request_of(part, 0)).code(), Code::invalid_argument); // under way
    drive(*engine);
    const LiveSequence& sequence = *find_sequence(*engine, id);
    const auto before = sequence.tokens;
    EXPECT_EQ(before.size(), 30u);
    EXPECT_EQ(engine->append_sequence(id, request_of({34, 1}, 1)).code(), Code::capacity); // no room for an answer
    EXPECT_EQ(engine->append_sequence(id, request_of({1, 1, 9}, 1)).code(), Code::invalid_argument);
    EXPECT_EQ(engine->append_sequence(id, {{kVocab}, 1, {}, 0, true}).code(), Code::invalid_argument);
    EXPECT_EQ(engine->append_sequence(id, {{1}, 1, {-1, 0}, 0, true}).code(), Code::invalid_argument);
    EXPECT_EQ(sequence.tokens, before);
    EXPECT_EQ(sequence.stop, StopReason::length);
    EXPECT_EQ(answer_of(*engine, id).tokens.size(), 10u);
    ASSERT_TRUE(engine->append_sequence(id, request_of({33, 0, 2}, 1)).ok()); // the last token that fits
    drive(*engine);
    EXPECT_EQ(sequence.stop, StopReason::context);
    EXPECT_EQ(sequence.tokens.size(), 64u);
    EXPECT_EQ(engine->append_sequence(id, {{}, 1, {}, 0, true}).code(), Code::capacity);
}

// A round that was under way when its sequence was cancelled may be read after the sequence was appended to: it says nothing.
TEST(Append, a_round_of_before_is_read_after_a_new_one) {
    auto engine = make_engine(pair(2, 200, 6));
    ASSERT_TRUE(engine);
    const std::vector<uint32_t> first = random_prompt(9, kVocab, 1), more = random_prompt(5, kVocab, 2);
    const uint64_t id = engine->create_sequence({first, kHoldTokens, {}, 0, true}).value();
    drive(*engine);
    ASSERT_TRUE(engine->append_sequence(id, {{}, 1, {}, 0, true}).ok()); // one token: one round
    PFN_vkGetFenceStatus& get_status = engine->device().vk.GetFenceStatus;
    const PFN_vkGetFenceStatus real = get_status;
    get_status = [](VkDevice, VkFence) { return VK_NOT_READY; }; // nothing is read
    ASSERT_TRUE(step(*engine, -1).ok());
    ASSERT_FALSE(engine->turns().idle());
    ASSERT_TRUE(cancel_sequence(*engine, id).ok());
    ASSERT_TRUE(engine->append_sequence(id, {more, 20, {}, 0, true}).ok());
    ASSERT_TRUE(step(*engine, -1).ok());
    get_status = real;
    drive(*engine);
    ASSERT_FALSE(HasFatalFailure());
    std::vector<uint32_t> whole = first;
    whole.insert(whole.end(), more.begin(), more.end());
    EXPECT_EQ(answer_of(*engine, id).tokens, run_job(*engine, {.prompt = whole, .max_tokens = 20}).tokens);
    EXPECT_EQ(find_sequence(*engine, id)->tokens.size(), whole.size() + 20);
}

} // namespace
} // namespace auspex::append_test
