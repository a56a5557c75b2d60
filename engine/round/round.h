// One turn of the wheel, recorded: rows, K draft steps, one target pass, accept, propose. Everything that varies between rounds
// lies in buffers, so a recording is replayed for as long as K and the batch bucket stay.
#pragma once

#include "accept/acceptance.h"
#include "draft/model_drafter.h"
#include "kernels/apply_commands.h"
#include "kernels/propose.h"
#include "kernels/rows.h"
#include "round/turn_buffers.h"
#include "verify/verify.h"

namespace auspex {

// GPU state of all slots, and scratch of one round.
struct RoundBuffers {
    Buffer state;           // (slots) SlotState
    Buffer history;         // (slots, history_stride) uint
    Buffer round_slots;     // (batch) RoundSlot
    Buffer target_rows;     // (batch, draft_len + 1) Row
    Buffer draft_rows;      // regions of Row, see draft_pass_first_row
    Buffer counts;          // counts_words(batch) uint
    Buffer index;           // (slots, 1 + index_words) uint: of searches
    Buffer target_logits;   // (batch, draft_len + 1, vocab) f32, or BestTokens: at most half as many
    Buffer draft_logits;    // (batch, draft_len, draft_vocab) f32, or BestTokens; of engines without a draft model 1 f32
    Buffer biases;          // (slots, kMaxBiases) TokenBias
    Buffer truncate_scratch; // (batch · (draft_len + 1), truncate_words(vocab)) uint
    Buffer cuts;            // (batch · (draft_len + 1)) Cut
    Buffer partials;        // (batch · (draft_len + 1), vocab chunks) VocabChoice
    Buffer target_choices;  // (batch, draft_len + 1) VocabChoice
    Buffer draft_choices;   // (batch, draft_len) VocabChoice
    Buffer plans;           // (batch) AcceptPlan
    Buffer race_partials;   // (batch, vocab chunks) RacePartial
    uint32_t history_stride = 0;
    uint32_t max_batch = 0, max_draft_len = 0;

    static Result<RoundBuffers> create(MemoryPool& memory, Uploader& uploader, uint32_t n_slots, uint32_t history_stride,
                                       uint32_t max_batch, uint32_t max_draft_len, uint32_t vocab, uint32_t draft_vocab); // 0: no draft model
};

// Whose cache, whose pass.
enum class ModelRole : uint32_t { target, draft };
constexpr ModelRole kModelRoles[] = {ModelRole::target, ModelRole::draft};

struct RoundModels {
    LlamaModel& target;
    LlamaModel* draft; // null: every round is plain

    LlamaModel* of(ModelRole role) const { return role == ModelRole::target ? &target : draft; } // null: there is none
};

// What recordings of rounds differ in.
struct RoundForm {
    uint32_t draft_len = 0; // K; slots may draft less
    uint32_t batch = 1;     // entries
    bool model_drafts = false; // the draft model drafts, for slots whose drafter it is
    bool searches = false;     // afterwards, slots that ask for it get the next round's drafts from their history
    LogitsUse logits_use = LogitsUse::all; // by any slot; unless it is all, logits are not kept
    bool edits_logits = false; // penalties and biases, for slots that ask for them
    Truncation truncation = {}; // top_k, top_p, min_p, for slots that ask for them

    auto operator<=>(const RoundForm&) const = default;
};

// The host's commands take effect; first in every turn.
void record_commands(Recorder& to, const RoundModels& models, const RoundBuffers& buffers, const TurnBuffers& turn);

// n_slices: parts that the target's pass is cut into, and the draft's into as many fewer as it is smaller; segments also end between
// passes and before heads. 0: one segment.
void record_round(Recorder& to, const RoundModels& models, const RoundBuffers& buffers, const TurnBuffers& turn,
                  const RoundForm& form, uint32_t n_slices = 0);

} // namespace auspex
