/* For our own apps and tests: listing devices, describing models, random-weight models. Unstable: may change in any
 * version. C99. Same rules as auspex.h. */
#ifndef AUSPEX_AUSPEX_TOOLS_H
#define AUSPEX_AUSPEX_TOOLS_H

#include <auspex/auspex.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- devices ---------------------------------------------------------------------------------------------------- */

typedef struct auspex_device_info {
    auspex_header header;
    char name[256];
    char driver[256];       /* name and version */
    char kind[32];          /* "discrete", "integrated", "virtual", "cpu", "other" */
    uint32_t api_version;   /* as Vulkan packs it */
    uint32_t usable;        /* 0: see `unusable_because` */
    char unusable_because[256];
    uint32_t subgroup_size;
    uint32_t subgroup_size_min, subgroup_size_max; /* equal to subgroup_size where the device has one size */
    uint64_t max_storage_buffer_range; /* bytes */
    uint64_t max_allocation_bytes;
    uint64_t device_local_bytes;       /* largest device-local heap */
    uint32_t max_shared_memory_bytes;
    uint32_t max_workgroup_invocations;
    float timestamp_period_ns;         /* 0: no timestamps */
    char features[512];                /* optional features found, separated by spaces */
    char numerics_id[64];
} auspex_device_info;

AUSPEX_API auspex_status auspex_device_info_init(auspex_device_info* info, size_t size);

/** Describes device `index` (0-based, the order of `--device N`). NOT_FOUND when there is none of that index, NO_DEVICE when there is none at all.
 *  Any thread. log may be NULL. */
AUSPEX_API auspex_status auspex_device_describe(uint32_t index, auspex_device_info* info, auspex_log_callback log,
                                                void* log_user_data);

/* ---- models ----------------------------------------------------------------------------------------------------- */

typedef struct auspex_model_info {
    auspex_header header;
    uint32_t hidden_size, n_layers, n_heads, n_kv_heads, head_dim, ffn_size, vocab_size, max_position;
    uint32_t tied_embedding;      /* 0 or 1 */
    float rope_theta, rms_eps;
    char dtype[16];               /* of the matrices: "bf16", "f16", "f32" */
    uint64_t n_parameters;        /* a tied embedding counts once */
    uint64_t weights_bytes;       /* on the device */
    uint64_t cache_bytes_per_token; /* for the cache type asked */
} auspex_model_info;

AUSPEX_API auspex_status auspex_model_info_init(auspex_model_info* info, size_t size);

/** Reads the header of a model folder, not its weights. INVALID_ARGUMENT: no path, or an unknown cache_type. Any thread.
    log may be NULL. */
AUSPEX_API auspex_status auspex_model_describe(const char* path, auspex_cache_type cache_type, auspex_model_info* info,
                                               auspex_log_callback log, void* log_user_data);

/** A random-weight model: chain into auspex_engine_desc.header.next to run shapes without a file. */
typedef struct auspex_synthetic_shape {
    uint32_t hidden_size, n_layers, n_heads, n_kv_heads, head_dim, ffn_size, vocab_size, max_position;
    uint32_t tied_embedding; /* 0 or 1 */
    uint32_t dtype;          /* 0: f32, 1: f16, 2: bf16 */
    uint64_t seed;
    float scale;             /* standard deviation of the weights */
} auspex_synthetic_shape;

/** target.hidden_size 0: the file named in the engine's desc. There is no tokenizer then: prompts are token ids. */
typedef struct auspex_synthetic_models {
    auspex_header header;
    auspex_synthetic_shape target;
    auspex_synthetic_shape draft; /* hidden_size 0: no draft, unless draft_path names one */
} auspex_synthetic_models;

AUSPEX_API auspex_status auspex_synthetic_models_init(auspex_synthetic_models* models, size_t size);

/* ---- measurement ------------------------------------------------------------------------------------------------ */

/** Sums over the rounds of the engine since the last call, for one (draft_len, batch) at a time. */
typedef struct auspex_round_times {
    uint32_t rounds;
    double draft_ms;  /* GPU time of the draft passes and picks; < 0: the device has no timestamps */
    double verify_ms; /* GPU time of the target pass */
    double accept_ms;
    double wall_ms;   /* between the completions of consecutive rounds */
} auspex_round_times;

/** Times of all rounds recorded with this draft_len since they were last taken, then starts anew. */
AUSPEX_API auspex_status auspex_engine_take_round_times(auspex_engine* engine, uint32_t draft_len,
                                                        auspex_round_times* times);

#ifdef __cplusplus
}
#endif

#endif
