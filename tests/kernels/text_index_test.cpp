// Rounds of made-up texts through acceptance and search: the index asks for every search that finds something, whatever was done
// to the text, and for hardly any other.
#include "gpu_test.h"
#include "accept/acceptance.h"
#include "kernels/propose.h"
#include "kernels/vocab.h"
#include "reference/ngram.h"
#include "shared/accept_args.h"
#include "test_shaders.h"

#include <algorithm>

namespace auspex::text_index_test {
namespace {

using Tokens = std::vector<uint32_t>;
using reference::Proposal;

constexpr uint32_t kDraftLen = gpu::kMaxDraftLen, kRows = kDraftLen + 1;

// A slot's search, and its text to come: what is accepted.
struct Story {
    Tokens text;
    size_t known = 1; // tokens of it that a host would have put in
    uint32_t search = gpu::kDrafterNgram, ngram_max = 4, search_len = 4;
    size_t new_n = 0; // tokens that are all different: nothing is found up to there

    Proposal expected(size_t len) const {
        if (len <= new_n) return {};
        const std::span<const uint32_t> so_far(text.data(), len);
        return search == gpu::kDrafterNgram ? reference::propose_ngram(so_far, ngram_max, search_len) : reference::propose_lookup(so_far, ngram_max, search_len);
    }
};

struct Tally {
    std::string first_wrong;
    uint32_t rounds = 0;
    uint32_t found = 0;   // … that proposed something
    uint32_t wrong = 0;   // … that proposed something else than the reference
    uint32_t in_vain = 0; // searches that found nothing, besides those that read a text
};

Tokens random_text(size_t n, uint32_t alphabet, uint32_t seed) {
    reference::DataStream random(seed);
    Tokens text(n);
    for (uint32_t& token : text) token = 1000 + random.below(alphabet);
    return text;
}
Tokens all_different(size_t n) {
    Tokens text(n);
    for (size_t i = 0; i < n; ++i) text[i] = static_cast<uint32_t>(100 + i);
    return text;
}

class TextIndex : public GpuTest {
  protected:
    void set_up(KernelLibrary& library, uint32_t n_slots, uint32_t longest) {
        slots_ = n_slots;
        stride_ = longest + 3;
        lens_.assign(n_slots, 0);
        is_read_.assign(n_slots, false);
        index_bytes_ = uint64_t{n_slots} * (1 + gpu::index_words_for(stride_)) * 4;
        std::vector<uint32_t> order(n_slots);
        for (uint32_t i = 0; i < n_slots; ++i) order[i] = n_slots - 1 - i;
        batch_ = upload(order);
        state_ = upload(std::vector<gpu::SlotState>(n_slots));
        history_ = output<uint32_t>(size_t{n_slots} * stride_);
        round_slots_ = output<gpu::RoundSlot>(n_slots);
        rows_ = upload(std::vector<gpu::Row>(n_slots * kRows));
        choices_ = output<gpu::VocabChoice>(n_slots * kRows);
        plans_ = output<gpu::AcceptPlan>(n_slots);
        records_ = output<gpu::RoundRecord>(n_slots);
        counts_ = output<uint32_t>(gpu::counts_words(n_slots));
        nothing_ = output<uint32_t>(64 * n_slots);
        index_ = upload(std::vector<uint32_t>(index_bytes_ / 4)); // as an engine begins
        auto made = Recording::create(device(), 0);
        ASSERT_TRUE(made.ok());
        recording_ = std::move(made).value();
        recording_->begin_segment("round");
        Recorder to{*recording_, library};
        record_accept(to,
                      {.target_logits = nothing_.view(), .draft_logits = nothing_.view(), .target_choices = choices_.view(),
                       .draft_choices = nothing_.view(), .state = state_.view(), .history = history_.view(), .round_slots = round_slots_.view(),
                       .target_rows = rows_.view(), .plans = plans_.view(), .race_partials = nothing_.view(), .records = records_.view(),
                       .counts = counts_.view(), .index = index_.view()},
                      {.batch = n_slots, .draft_len = kDraftLen, .vocab = 64, .draft_vocab = 0, .history_stride = stride_, .races = false, .index_words = gpu::index_words_for(stride_)});
        to.cmd.barrier();
        record_propose(to, {.batch = batch_.view(), .state = state_.view(), .history = history_.view(), .records = records_.view(),
                            .counts = counts_.view(), .index = index_.view()}, stride_);
        recording_->end_segment();
        ASSERT_TRUE(recording_->finish().ok());
    }

    template <typename T> T* words(const Buffer& buffer) { return reinterpret_cast<T*>(buffer.mapped()); }

    // As a host admits a text: all words of the state anew.
    void admit(uint32_t slot, const Story& story) {
        gpu::SlotState& state = words<gpu::SlotState>(state_)[slot];
        state = {};
        state.live = 1;
        state.max_generated = ~0u;
        state.max_context = stride_;
        state.lenience = 1;
        state.search = story.search;
        state.search_len = story.search_len;
        state.ngram_max = story.ngram_max;
        state.target_len = static_cast<uint32_t>(story.known) - 1;
        state.last_token = story.text[story.known - 1];
        std::copy_n(story.text.begin(), story.known, words<uint32_t>(history_) + size_t{slot} * stride_);
        lens_[slot] = story.known;
        is_read_[slot] = false;
    }

    // Each slot's text goes on by n[slot] tokens, 1 to kRows; 0: it has no part in the round.
    void round(const std::vector<Story>& stories, const std::vector<uint32_t>& n, Tally& tally) {
        for (uint32_t b = 0; b < slots_; ++b) {
            const uint32_t slot = words<uint32_t>(batch_)[b], len = static_cast<uint32_t>(lens_[slot]);
            words<gpu::RoundSlot>(round_slots_)[b] = {slot, n[slot] > 0 ? n[slot] - 1 : 0, len - 1, n[slot] > 0 ? 1u : 0u, 1};
            for (uint32_t j = 0; j < n[slot]; ++j) {
                words<gpu::VocabChoice>(choices_)[b * kRows + j].best_id = stories[slot].text[len + j];
                if (j > 0) words<gpu::Row>(rows_)[b * kRows + j].token = stories[slot].text[len + j - 1];
            }
        }
        uint32_t* counts = words<uint32_t>(counts_) + gpu::kCountsSearch; // as `rows` leaves them
        counts[0] = 0;
        counts[1] = counts[2] = 1;
        submit_and_wait(*recording_);
        ASSERT_LE(counts[0], slots_);
        std::vector<bool> searched(slots_);
        for (uint32_t i = 0; i < counts[0]; ++i) searched[words<uint32_t>(batch_)[counts[3 + i]]] = true;
        for (uint32_t b = 0; b < slots_; ++b) {
            const uint32_t slot = words<uint32_t>(batch_)[b];
            if (n[slot] == 0) continue;
            lens_[slot] += n[slot];
            const gpu::SlotState& state = words<gpu::SlotState>(state_)[slot];
            const Tokens text = read<uint32_t>(history_, lens_[slot], size_t{slot} * stride_);
            ASSERT_TRUE(std::equal(text.begin(), text.end(), stories[slot].text.begin())) << "slot " << slot << " was given another text";
            const Proposal expected = stories[slot].expected(lens_[slot]);
            const Proposal found = {Tokens(state.proposed, state.proposed + std::min(state.n_proposed, kDraftLen)), state.match_len};
            const bool right = found == expected && words<gpu::RoundRecord>(records_)[b].match_len == expected.match_len;
            tally.wrong += right ? 0 : 1;
            if (!right && tally.first_wrong.empty()) tally.first_wrong = "slot " + std::to_string(slot) + ", " + std::to_string(lens_[slot]) + " tokens";
            tally.rounds += 1;
            tally.found += expected.match_len > 0 ? 1 : 0;
            tally.in_vain += searched[slot] && is_read_[slot] && expected.match_len == 0 ? 1 : 0;
            EXPECT_TRUE(searched[slot] || is_read_[slot]) << "a new text was not read";
            is_read_[slot] = true;
        }
    }

    // To the end of every text, by random steps.
    void play(const std::vector<Story>& stories, uint32_t seed, Tally& tally) {
        reference::DataStream random(seed);
        for (uint32_t slot = 0; slot < slots_; ++slot) admit(slot, stories[slot]);
        for (;;) {
            std::vector<uint32_t> n(slots_);
            for (uint32_t slot = 0; slot < slots_; ++slot) {
                const size_t left = stories[slot].text.size() - lens_[slot];
                n[slot] = static_cast<uint32_t>(std::min<size_t>(left, random.below(3) == 0 ? random.below(kRows + 1) : 1));
            }
            bool all_told = true;
            for (uint32_t slot = 0; slot < slots_; ++slot) all_told &= lens_[slot] == stories[slot].text.size();
            if (all_told) return;
            round(stories, n, tally);
            if (HasFatalFailure()) return;
        }
    }

    // Texts of all kinds and lengths, one after the other in the same slots.
    Tally play_random_texts(KernelLibrary& library) {
        constexpr uint32_t kSlots = 32;
        Tally tally;
        set_up(library, kSlots, 300);
        for (uint32_t seed = 0; seed < 16 && !HasFatalFailure(); ++seed) {
            std::vector<Story> stories;
            for (uint32_t i = 0; i < kSlots; ++i) {
                reference::DataStream random(100 * seed + i);
                const uint32_t alphabets[] = {1, 2, 4, 12, 40};
                Story story = {.text = random_text(2 + random.below(i % 2 ? 20 : 260), alphabets[i % 5], 32 * seed + i),
                               .search = i % 3 == 2 ? gpu::kDrafterLookup : gpu::kDrafterNgram,
                               .ngram_max = 2 + (i + seed) % 15,
                               .search_len = random.below(kDraftLen + 1)};
                story.known = 1 + random.below(static_cast<uint32_t>(story.text.size()) - 1);
                stories.push_back(story);
            }
            play(stories, seed, tally);
        }
        return tally;
    }

    uint32_t slots_ = 0, stride_ = 0;
    uint64_t index_bytes_ = 0;
    std::vector<size_t> lens_;
    std::vector<bool> is_read_; // since it was admitted
    Buffer batch_, state_, history_, round_slots_, rows_, choices_, plans_, records_, counts_, nothing_, index_;
    std::unique_ptr<Recording> recording_;
};

TEST_F(TextIndex, every_round_proposes_what_its_text_holds) {
    const Tally tally = play_random_texts(kernels());
    EXPECT_EQ(tally.wrong, 0u) << tally.first_wrong;
    EXPECT_GT(tally.rounds, 4000u);
    EXPECT_GT(tally.found, tally.rounds / 4);
    EXPECT_LT(tally.found, tally.rounds * 9 / 10);
}

// Fault 1: an n-gram in eight is not put in.
TEST_F(TextIndex, an_index_that_forgets_is_found_out) {
    const std::unique_ptr<KernelLibrary> library = new_library();
    library->replace("accept_commit.searches", test_shader("accept_commit.searches.fault1"));
    const Tally tally = play_random_texts(*library);
    EXPECT_GT(tally.wrong, 10u);
}

// However many texts a slot has had before: what they left is out of date.
TEST_F(TextIndex, text_that_does_not_repeat_is_not_searched) {
    constexpr uint32_t kSlots = 6, kLength = 300;
    set_up(kernels(), kSlots, kLength);
    for (uint32_t part = 0; part < 6; ++part) {
        std::vector<Story> stories;
        for (uint32_t i = 0; i < kSlots; ++i)
            stories.push_back({.text = random_text(kLength, 30000, 8 * part + i),
                               .known = 1 + 40 * i,
                               .search = i % 2 ? gpu::kDrafterLookup : gpu::kDrafterNgram,
                               .ngram_max = 4 + i % 3});
        Tally tally;
        play(stories, part, tally);
        ASSERT_FALSE(HasFatalFailure());
        EXPECT_EQ(tally.wrong, 0u) << tally.first_wrong;
        EXPECT_LT(tally.in_vain, tally.rounds / 10) << "of " << tally.rounds << ", part " << part;
    }
}

// What left the window was put in by rounds, or read with the text; then it comes again, where the window just holds it or no more.
TEST_F(TextIndex, the_window_ends_where_it_should) {
    for (uint32_t search : {gpu::kDrafterNgram, gpu::kDrafterLookup}) {
        const uint32_t window = gpu::search_window(search), shifts = 8;
        const uint32_t context = search == gpu::kDrafterNgram ? 4 : 3; // of three tokens
        std::vector<Story> stories;
        for (uint32_t slot = 0; slot < 2 * shifts; ++slot) {
            Story story = {.text = all_different(window + 40), .search = search, .ngram_max = context};
            // The text's first three tokens below its end return at the end of a text of window + shift tokens.
            const size_t first = 20, shift = slot % shifts, end = first + window + shift - 4;
            std::copy_n(story.text.begin() + first, 3, story.text.begin() + static_cast<ptrdiff_t>(end) - 3);
            story.text.resize(end + 1);
            story.known = slot < shifts ? 1 : 60;
            story.new_n = end - 3;
            stories.push_back(story);
        }
        set_up(kernels(), 2 * shifts, window + 60);
        for (uint32_t slot = 0; slot < slots_; ++slot) admit(slot, stories[slot]);
        Tally tally;
        while (!HasFatalFailure()) {
            std::vector<uint32_t> n(slots_);
            for (uint32_t slot = 0; slot < slots_; ++slot) {
                const size_t left = stories[slot].text.size() - 1 - lens_[slot]; // stops where the three tokens have returned
                n[slot] = static_cast<uint32_t>(std::min<size_t>(left, kRows));
            }
            if (std::all_of(n.begin(), n.end(), [](uint32_t x) { return x == 0; })) break;
            round(stories, n, tally);
        }
        EXPECT_EQ(tally.wrong, 0u) << tally.first_wrong;
        EXPECT_EQ(tally.found, 2 * 5u); // shifts 0 to 4
    }
}

// A host that takes tokens back, goes on otherwise, or copies a slot's text to another tells all of the state anew.
TEST_F(TextIndex, texts_are_cut_continued_and_copied) {
    constexpr uint32_t kSlots = 12, kLongest = 400;
    Tally tally;
    set_up(kernels(), kSlots, kLongest);
    reference::DataStream random(5);
    std::vector<Story> stories(kSlots);
    for (uint32_t event = 0; event < 60 && !HasFatalFailure(); ++event) {
        for (uint32_t slot = 0; slot < kSlots; ++slot) {
            if (event > 0 && random.below(3) > 0) continue; // its text goes on
            Story& story = stories[slot];
            const Story& source = stories[random.below(kSlots)];
            Tokens kept = event == 0 || random.below(4) == 0 ? Tokens{7} : random.below(2) == 0 ? source.text : story.text;
            kept.resize(1 + random.below(static_cast<uint32_t>(std::min<size_t>(kept.size(), kLongest / 2))));
            story.search = random.below(2) ? gpu::kDrafterNgram : gpu::kDrafterLookup;
            story.ngram_max = 2 + random.below(6);
            Tokens more = random_text(kLongest - kept.size(), 2 + random.below(1000), 100 * event + slot);
            for (size_t at = 0; at + 12 < more.size() && kept.size() > 6; at += 12) // what only the part that was put in holds
                std::copy_n(kept.begin() + random.below(static_cast<uint32_t>(kept.size()) - 6), 6, more.begin() + static_cast<std::ptrdiff_t>(at));
            story.text = kept;
            story.text.insert(story.text.end(), more.begin(), more.end());
            story.known = kept.size() + random.below(20);
            admit(slot, story);
        }
        for (uint32_t step = 0; step < 6 && !HasFatalFailure(); ++step) {
            std::vector<uint32_t> n(kSlots);
            for (uint32_t slot = 0; slot < kSlots; ++slot)
                n[slot] = std::min(static_cast<uint32_t>(stories[slot].text.size() - lens_[slot]), random.below(random.below(4) ? 3 : kRows + 1));
            round(stories, n, tally);
        }
        for (uint32_t slot = 0; slot < kSlots; ++slot) stories[slot].text.resize(std::max<size_t>(lens_[slot], 1)); // what there is to copy
        for (uint32_t slot = 0; slot < kSlots; ++slot) {
            const Tokens more = random_text(kLongest - stories[slot].text.size(), 6, 7000 + 100 * event + slot);
            stories[slot].text.insert(stories[slot].text.end(), more.begin(), more.end());
        }
    }
    EXPECT_EQ(tally.wrong, 0u) << tally.first_wrong;
    EXPECT_GT(tally.found, tally.rounds / 4);
}

} // namespace
} // namespace auspex::text_index_test
