/* For our own apps and tests: listing devices, describing and converting models, random-weight models, tokenizers without an
 * engine, scores and logits. Unstable: may change in any version. C99. Same rules as auspex.h. */
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
    char dtype[16];               /* that most bytes of the matrices have: "bf16", "q4_k", … */
    uint64_t n_parameters;        /* a tied embedding counts once */
    uint64_t weights_bytes;       /* on the device */
    uint64_t cache_bytes_per_token; /* for the cache type asked */
} auspex_model_info;

AUSPEX_API auspex_status auspex_model_info_init(auspex_model_info* info, size_t size);

/** Reads the header of a GGUF file or of a model folder's files, not the weights. INVALID_ARGUMENT: no path, or an unknown
 *  cache_type. Any thread. log may be NULL. */
AUSPEX_API auspex_status auspex_model_describe(const char* path, auspex_cache_type cache_type, auspex_model_info* info,
                                               auspex_log_callback log, void* log_user_data);

/** auspex_synthetic_shape.dtype. From Q8_0 on only with generate_on_device. */
typedef enum auspex_synthetic_dtype {
    AUSPEX_SYNTHETIC_F32 = 0,
    AUSPEX_SYNTHETIC_F16 = 1,
    AUSPEX_SYNTHETIC_BF16 = 2,
    AUSPEX_SYNTHETIC_Q8_0 = 3,
    AUSPEX_SYNTHETIC_Q4_0 = 4,
    AUSPEX_SYNTHETIC_Q4_1 = 5,
    AUSPEX_SYNTHETIC_Q5_0 = 6,
    AUSPEX_SYNTHETIC_Q5_1 = 7,
    AUSPEX_SYNTHETIC_Q2_K = 8,
    AUSPEX_SYNTHETIC_Q3_K = 9,
    AUSPEX_SYNTHETIC_Q4_K = 10,
    AUSPEX_SYNTHETIC_Q5_K = 11,
    AUSPEX_SYNTHETIC_Q6_K = 12,
    AUSPEX_SYNTHETIC_MAX_ENUM = 0x7fffffff
} auspex_synthetic_dtype;

/** A random-weight model: chain into auspex_engine_desc.header.next to run shapes without a file. */
typedef struct auspex_synthetic_shape {
    uint32_t hidden_size, n_layers, n_heads, n_kv_heads, head_dim, ffn_size, vocab_size, max_position;
    uint32_t tied_embedding; /* 0 or 1 */
    uint32_t dtype;          /* an auspex_synthetic_dtype; rows that are not whole blocks of it take the next one that fits */
    uint64_t seed;
    float scale;             /* standard deviation of the weights */
    uint32_t distinct_tokens; /* 0: all; else token i has the embedding and head rows of token i % distinct_tokens: exact ties */
    uint32_t generate_on_device; /* 1: a kernel writes the matrices where they are used, in any dtype: gigabytes in a second, and
                                    nothing passes through the host; other numbers than with 0 for the same seed; distinct_tokens
                                    must be 0. INVALID_ARGUMENT otherwise, and where dtype is none of the above */
} auspex_synthetic_shape;

/** target.hidden_size 0: the file named in the engine's desc. There is no tokenizer then: prompts are token ids. */
typedef struct auspex_synthetic_models {
    auspex_header header;
    auspex_synthetic_shape target;
    auspex_synthetic_shape draft; /* hidden_size 0: no draft, unless draft_path names one */
} auspex_synthetic_models;

AUSPEX_API auspex_status auspex_synthetic_models_init(auspex_synthetic_models* models, size_t size);

/** Writes the model at `path` (as auspex_engine_desc.target_path) into one GGUF file, its matrices converted to `type`, with its
 *  tokenizer and chat template. Never to more bits than they have; AUSPEX_WEIGHTS_AS_IS only repacks. An existing file is
 *  replaced when all is written. May take minutes, all of them in this call. progress: 0…1; it and log may be NULL. Any thread.
 *  UNSUPPORTED: `type` is none of auspex_weight_type. */
AUSPEX_API auspex_status auspex_quantize_model(const char* path, const char* gguf_path, auspex_weight_type type,
                                               auspex_progress_callback progress, void* progress_user_data,
                                               auspex_log_callback log, void* log_user_data);

/** What an engine would reserve on its device, in bytes. */
typedef struct auspex_memory_plan {
    auspex_header header;
    uint64_t target_weights, draft_weights; /* draft: 0 without one */
    uint64_t target_cache, draft_cache;     /* K and V of all sequences at max_context */
    uint64_t activations;                   /* scratch, slot states, what host and GPU exchange */
    uint64_t total;                         /* of all, in the blocks that the device is asked for */
    uint64_t device_bytes, device_free_bytes; /* of the device's largest heap; free: as VK_EXT_memory_budget tells, else all */
    uint32_t max_context;                   /* tokens per sequence that were reckoned with */
    uint32_t fits;                          /* 0 or 1 */
    uint32_t device_is_cpu;                 /* 0 or 1 */
    uint64_t target_pass_bytes, draft_pass_bytes; /* of weights, read by a pass of one row; draft: of the model or the copy that drafts */
} auspex_memory_plan;

AUSPEX_API auspex_status auspex_memory_plan_init(auspex_memory_plan* plan, size_t size);

/** Reckons before anything is loaded, from the same description that auspex_engine_create takes; opens the device and reads
 *  the models' headers. Errors as auspex_engine_create, except that a plan that does not fit is no error. Any thread. */
AUSPEX_API auspex_status auspex_plan_memory(const auspex_engine_desc* desc, auspex_memory_plan* plan);

/* ---- tuning ----------------------------------------------------------------------------------------------------- */

#define AUSPEX_TYPE_TUNING_REPORT ((auspex_struct_type)1004)

/** The sizes that an engine runs with. */
typedef struct auspex_tuning_report {
    auspex_header header;
    char device_name[256];  /* UTF-8 */
    char driver[256];
    char numerics_id[64];
    char sizes[192];        /* in a few words */
    int32_t rows_agree;     /* bits of passes of different row counts: 1: equal; 0: not, so that every pass runs through tiles of one row count; -1: not compared */
    char difference[160];   /* where they were found to differ first, in this call; else "" */
    uint32_t is_timed;      /* 1: sizes were chosen by timing; 0: they follow from what the device says of itself */
    uint32_t is_kept;       /* 1: the cache_folder holds this */
    uint32_t is_complete;   /* 0: time ran out before every candidate was timed */
} auspex_tuning_report;

AUSPEX_API auspex_status auspex_tuning_report_init(auspex_tuning_report* report, size_t size);

/** One size that was tried. Strings live during the call. */
typedef struct auspex_tuning_candidate {
    const char* knob;
    const char* candidate;
    double ms;           /* GPU time, the least of several; < 0: time ran out before it */
    uint32_t is_default; /* 1: what the device says of itself leads to it */
    uint32_t is_chosen;
} auspex_tuning_candidate;

typedef void (*auspex_tuning_callback)(void* user_data, const auspex_tuning_candidate* candidate);

/** Measures a device for the weight types of these models, whatever cache_folder knows, for about 20 s, and keeps the outcome
 *  there. desc->progress is told how far it is. `each`, which may be NULL, is told of every candidate, knob by knob, when all is
 *  done. Opens the device and reads the models' headers; takes up to 512 MiB of device memory meanwhile. Waits. Nothing else should
 *  use the device. Devices without timestamps are only compared. Errors as auspex_engine_create. Any thread. */
AUSPEX_API auspex_status auspex_tune(const auspex_engine_desc* desc, auspex_tuning_callback each, void* user_data,
                                     auspex_tuning_report* report);

/** What an engine would use of what is known: measures nothing. Errors as auspex_engine_create. Any thread. */
AUSPEX_API auspex_status auspex_describe_tuning(const auspex_engine_desc* desc, auspex_tuning_report* report);

/* ---- tokenizers ------------------------------------------------------------------------------------------------- */

/** A vocabulary without an engine. Opaque; calls on one tokenizer may come from several threads, except destroy. */
typedef struct auspex_tokenizer auspex_tokenizer;

/** path: a model, which may lack its weights. *tokenizer is NULL on error. Any thread. log may be NULL and is not kept. */
AUSPEX_API auspex_status auspex_tokenizer_open(const char* path, auspex_tokenizer** tokenizer, auspex_log_callback log,
                                               void* log_user_data);
/** NULL is allowed. */
AUSPEX_API void auspex_tokenizer_destroy(auspex_tokenizer* tokenizer);

/** As auspex_engine_tokenize. parse_control: 1: spellings of control tokens in the text become those tokens (for text that
 *  programs wrote, never for what users typed); 0: they are text. */
AUSPEX_API auspex_status auspex_tokenizer_encode(const auspex_tokenizer* tokenizer, const char* text, size_t text_bytes,
                                                 int add_bos, int parse_control, uint32_t* tokens, size_t capacity,
                                                 size_t* count);

/** As auspex_engine_encode_chat: what it says of a model, before any weight is loaded. log may be NULL and is not kept. */
AUSPEX_API auspex_status auspex_tokenizer_encode_chat(const auspex_tokenizer* tokenizer, const auspex_chat_turn* turn,
                                                      uint32_t* tokens, size_t capacity, size_t* count,
                                                      auspex_log_callback log, void* log_user_data);

/** As auspex_engine_encode_messages. log may be NULL and is not kept. */
AUSPEX_API auspex_status auspex_tokenizer_encode_messages(const auspex_tokenizer* tokenizer, const auspex_chat_message* messages,
                                                          size_t message_count, const auspex_chat_options* options, uint32_t* tokens,
                                                          size_t capacity, size_t* count, auspex_log_callback log, void* log_user_data);

/** The UTF-8 text of a whole list of tokens, control tokens left out; incomplete characters become U+FFFD. Writes up to
 *  capacity bytes, no terminator; *bytes is the number needed. CAPACITY when they did not fit. text may be NULL. */
AUSPEX_API auspex_status auspex_tokenizer_decode(const auspex_tokenizer* tokenizer, const uint32_t* tokens, size_t count,
                                                 char* text, size_t capacity, size_t* bytes);

/** The bytes that a token stands for, which need not be whole characters; of a control token its spelling. Writes as decode.
 *  is_control may be NULL. INVALID_ARGUMENT: id is outside the vocabulary. */
AUSPEX_API auspex_status auspex_tokenizer_piece(const auspex_tokenizer* tokenizer, uint32_t id, char* text, size_t capacity,
                                                size_t* bytes, int* is_control);

/** Tokens; 0 for NULL. */
AUSPEX_API uint32_t auspex_tokenizer_vocab_size(const auspex_tokenizer* tokenizer);
/** Whether prompts begin with BOS, 0 or 1, and its id (0 when the vocabulary has none). id may be NULL. */
AUSPEX_API int auspex_tokenizer_adds_bos(const auspex_tokenizer* tokenizer, uint32_t* id);

/* ---- scores ----------------------------------------------------------------------------------------------------- */

/** Logits of the token after tokens[position], before any temperature: n_logits f32, valid during the call. */
typedef void (*auspex_logits_callback)(void* user_data, size_t position, const float* logits, size_t n_logits);

typedef struct auspex_score_options {
    auspex_header header;
    const size_t* logit_positions; /* ascending, below the number of tokens; told to `logits` in this order */
    size_t logit_position_count;
    auspex_logits_callback logits; /* NULL: none */
    auspex_progress_callback progress; /* 0…1 of the tokens are read; NULL: none */
    void* user_data;               /* of both callbacks */
} auspex_score_options;

AUSPEX_API auspex_status auspex_score_options_init(auspex_score_options* options, size_t size);

/** Reads tokens through the target as if it had generated them. log_probs, of n - 1 doubles, receives the natural logarithm
 *  of the probability of tokens[i + 1] after tokens[0 … i]; NULL when only logits are wanted. options may be NULL. Waits for
 *  the work under way and for its own, which takes as many passes as n / 16. Uses a free slot during the call.
 *  CAPACITY: no free slot, or n is above max_context. INVALID_ARGUMENT: no token, an id outside the vocabulary, positions
 *  that do not ascend or are not below n. */
AUSPEX_API auspex_status auspex_engine_score(auspex_engine* engine, const uint32_t* tokens, size_t n, double* log_probs,
                                             const auspex_score_options* options);

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

/** Chained into auspex_sequence_desc.header.next: a draft passes the test with this probability, whatever it is, by one coin per
 *  position of the text, a pure function of the seed. All work of a round is done as ever, so that the speed of a pair can be
 *  measured at a given acceptance without its weights. THE TEXT MEANS NOTHING. With AUSPEX_ACCEPT_REJECTION and lenience 1 only.
 *  Its type is no member of auspex_struct_type: callers of auspex.h alone cannot name it. */
#define AUSPEX_TYPE_SIMULATED_ACCEPTANCE ((auspex_struct_type)1001)
typedef struct auspex_simulated_acceptance {
    auspex_header header;
    float alpha; /* 0 … 1 */
} auspex_simulated_acceptance;

AUSPEX_API auspex_status auspex_simulated_acceptance_init(auspex_simulated_acceptance* simulated, size_t size);

/** What a copy by a compute kernel reaches: 16-byte loads and stores, up to 256 MiB from one buffer to another. */
typedef struct auspex_copy_speed {
    uint64_t bytes;       /* of one copy, bytes read and bytes written both counted */
    double ms;            /* median */
    double gb_per_second; /* bytes / ms; 1e9 bytes */
} auspex_copy_speed;

/** Waits for the work under way and for its own; takes up to 512 MiB of device memory meanwhile.
 *  INVALID_ARGUMENT: repetitions is not 1 … 1000. OUT_OF_DEVICE_MEMORY: not even 2 MiB were free. */
AUSPEX_API auspex_status auspex_engine_measure_copy(auspex_engine* engine, uint32_t repetitions, auspex_copy_speed* speed);

/** A pass of one model over n_rows new positions after `depth` others, all of one sequence. What the cache holds at those is
 *  left as it is: it changes no time. */
typedef struct auspex_pass_desc {
    auspex_header header;
    uint32_t of_draft;    /* 1: of the draft model */
    uint32_t is_prompt;   /* 1: by the prompt kernels, layers only; 0: by the row kernels, with head and greedy choice of every row,
                             as the target's part of a round */
    uint32_t n_rows;      /* 1 (default) … as many as a round or a prompt chunk of this engine has at most */
    uint32_t depth;       /* depth + n_rows ≤ the model's context */
    uint32_t repetitions; /* 5; one more warms up */
    uint32_t with_stages; /* 1: a second time, with a timestamp around every stage */
} auspex_pass_desc;

AUSPEX_API auspex_status auspex_pass_desc_init(auspex_pass_desc* desc, size_t size);

typedef struct auspex_stage_time {
    char name[24];  /* "qkv", "attention", …: what there is depends on the device's fusions */
    uint32_t count; /* stages of this name in one pass */
    double ms;      /* GPU time of all of them in one pass, median */
} auspex_stage_time;

#define AUSPEX_MAX_STAGES 32u
#define AUSPEX_TYPE_PASS_DESC ((auspex_struct_type)1002)
#define AUSPEX_TYPE_PASS_TIMES ((auspex_struct_type)1003)

typedef struct auspex_pass_times {
    auspex_header header;
    double gpu_ms;           /* median of the repetitions; < 0: the device has no timestamps */
    double least_ms, most_ms;
    double wall_ms;          /* per pass of passes that were submitted together, host's clock */
    uint32_t n_dispatches, n_barriers; /* of one pass */
    uint64_t weights_bytes;  /* read by one pass */
    uint64_t cache_bytes;    /* of keys and values up to the last row */
    double flops;            /* of its matrices: two for each weight and row */
    uint32_t n_stages;       /* of `stages`; 0 without with_stages or timestamps */
    auspex_stage_time stages[AUSPEX_MAX_STAGES];
} auspex_pass_times;

AUSPEX_API auspex_status auspex_pass_times_init(auspex_pass_times* times, size_t size);

/** Waits for the work under way and for its own. Uses a free slot during the call.
 *  CAPACITY: no free slot, or more positions than max_context. INVALID_ARGUMENT: n_rows or repetitions out of range, or no draft. */
AUSPEX_API auspex_status auspex_engine_measure_pass(auspex_engine* engine, const auspex_pass_desc* desc,
                                                    auspex_pass_times* times);

/** A turn of the GPU ("round", "prefill", "draft prefill", "fork"), or a stage within it ("draft", "verify", "accept", …). */
typedef struct auspex_trace_event {
    const char* name;    /* lives as long as the library */
    uint32_t is_stage;   /* 1: of the turn that was told last */
    uint64_t turn;       /* its number, from 1 */
    uint64_t begin_ns;   /* on a monotonic clock of the host's: turns do not overlap, stages lie within their turn */
    uint64_t duration_ns; /* GPU time */
    uint32_t draft_len, batch; /* of rounds: drafts that there was room for; sequences that took part. Stages have their turn's */
    uint32_t n_accepted, n_tokens; /* of rounds, over their sequences: accepted drafts, generated tokens; 0 tokens: none was still running */
    const char* drafter; /* of rounds, whose drafts were tested: its name, "none", or "mixed"; else "" */
} auspex_trace_event;

typedef void (*auspex_trace_callback)(void* user_data, const auspex_trace_event* event);

/** Told of every turn once it is done, then of its stages in order, inside auspex_engine_step and others that wait for turns; must
 *  not call the engine. GPU times become times of the host by the turn so far that began with the least wait after its submission:
 *  durations are the GPU's, and gaps but where such a turn comes; all may be early by that wait. Where the device has no timestamps
 *  there are no stages, and a turn reaches from its submission to when it was seen to be done. NULL: nothing is told (the default). */
AUSPEX_API auspex_status auspex_engine_set_trace(auspex_engine* engine, auspex_trace_callback callback, void* user_data);

/* ---- drafters --------------------------------------------------------------------------------------------------- */

/** What may be asked for as a sequence's drafter, and what it needs: for help, menus and reports. Strings live as long as the library. */
typedef struct auspex_drafter_info {
    auspex_drafter drafter;
    const char* name;      /* as flags have it */
    const char* summary;   /* a few words; "": the name says it */
    uint32_t may_use_model; /* 1: passes of the draft model, or of the model's own weights, may draft */
    uint32_t needs_model;  /* 1: without a draft model it stands for another */
    uint32_t searches;     /* 1: the text is searched for drafts */
    uint32_t asks_host;    /* 1: auspex_sequence_desc.host_drafter is asked */
    uint32_t rounds_place; /* in auspex_sequence_stats.drafter_rounds; 5: self_drafter_rounds; ~0: it is several drafters */
    uint32_t needs_self;   /* 1: without auspex_engine_desc.self_draft_weights it drafts nothing; with needs_model 1, too: either will do */
} auspex_drafter_info;

/** Writes the first `capacity` of them, in the order in which people are told of them, and returns how many there are. Any thread. */
AUSPEX_API uint32_t auspex_list_drafters(auspex_drafter_info* drafters, uint32_t capacity);

#ifdef __cplusplus
}
#endif

#endif
