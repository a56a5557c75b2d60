// One round as it is recorded: what all of its stages work on.
#pragma once

#include "kernels/logprobs.h"
#include "kernels/transforms.h"
#include "model/llama_forward.h"
#include "round_state/round_buffers.h"
#include "round_state/turn_buffers.h"
#include "sequence/sequence.h"
#include "shared/round_rows.h"

namespace auspex {

// Whose cache, whose pass.
enum class ModelRole : uint32_t { target, draft };
constexpr ModelRole kModelRoles[] = {ModelRole::target, ModelRole::draft};

struct RoundModels {
    LlamaModel& target;
    LlamaModel* draft; // the one that drafts: a model of its own, or a copy of the target; null: every round is plain

    LlamaModel* of(ModelRole role) const { return role == ModelRole::target ? &target : draft; } // null: there is none
    // Null: there is none, because a copy drafts into the target's.
    KvCache* draft_cache() const { return draft && !draft->is_copy() ? &draft->cache() : nullptr; }
    ModelRole cache_role(ModelRole of) const { return of == ModelRole::draft && !draft_cache() ? ModelRole::target : of; } // whose cache a pass uses
    KvCache* cache_of(ModelRole role) const { return role == ModelRole::target ? &target.cache() : draft_cache(); }
};

// What recordings of rounds differ in.
struct RoundForm {
    uint32_t draft_len = 0; // K; slots may draft less
    uint32_t batch = 1;     // entries
    bool model_drafts = false; // there are draft passes, for slots whose drafter has passes
    bool searches = false;     // afterwards, slots that ask for it get the next round's drafts from their history
    LogitsUse logits_use = LogitsUse::all; // by any slot; unless it is all, the draft's logits are not kept, nor the target's but for logprobs
    bool logprobs = false;     // of what slots say, for slots that ask for them
    bool edits_logits = false; // penalties and biases, for slots that ask for them
    Truncation truncation = {}; // top_k, top_p, min_p, for slots that ask for them

    uint32_t n_nodes() const { return gpu::nodes_of(draft_len); } // rows of an entry in the target's pass
    bool keeps_target_logits() const { return logits_use == LogitsUse::all || logprobs; }
    auto operator<=>(const RoundForm&) const = default;
};

struct RoundPass {
    RoundModels models;
    const RoundBuffers& buffers;
    const TurnBuffers& turn;
    RoundForm form;
    // Parts that the target's pass is cut into, and the draft's into as many fewer as it is smaller; segments also end between
    // passes and before heads. 0: one segment.
    uint32_t n_slices = 0;

    uint32_t target_slice_layers() const { return models.target.slice_layers(n_slices); }
    uint32_t draft_slice_layers() const;
    uint32_t draft_lead() const { return models.draft_cache() ? 1 : 0; } // rows of an entry before node 0 in the first draft pass
    BufferView counts(uint32_t first) const { return buffers.counts.view(first * 4, 12); } // 3 uint: an attention grid
    // Logits of the target, of all nodes; of the draft, of one node, whose rows are a region of draft_rows.
    VocabShape target_logits() const;
    VocabShape draft_logits(uint32_t node) const;
    BufferView draft_rows(uint32_t node) const;
    // Penalties, biases and cuts as the form asks for them. The cuts to give to the reductions, or none.
    BufferView record_transforms(Recorder& to, BufferView logits, const VocabShape& shape) const;
    LogprobBuffers logprob_buffers() const;
};

} // namespace auspex
