/* Auspex: speculative decoding of Llama pairs on any Vulkan GPU. The stable C interface; C99, no Vulkan types.
 *
 * Rules that hold for every function
 *   Threads    One thread at a time per engine; different engines are independent. The library makes no thread but for
 *              those that compile_threads allows, none of which outlives the call, and those that background_threads
 *              allows, none of which outlives the engine. No callback is called on either.
 *   Status     Negative is an error, zero or positive is fine. After an error the object it was asked of is unchanged,
 *              unless said otherwise. AUSPEX_ERROR_DEVICE_LOST is sticky: only destroy calls make sense afterwards.
 *   Structs    Begin with {type, size, next}; fill with auspex_…_init(&desc, sizeof desc), then set what differs.
 *   Pointers   Everything is copied during the call; nothing of the caller's is kept (callbacks and their user_data are).
 *   Blocking   Only auspex_engine_create, auspex_engine_wait and auspex_engine_destroy may wait.
 *   The library never exits, aborts, throws, prints, reads the environment or installs a signal handler.
 */
#ifndef AUSPEX_AUSPEX_H
#define AUSPEX_AUSPEX_H

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32) && defined(AUSPEX_SHARED)
#if defined(AUSPEX_BUILDING)
#define AUSPEX_API __declspec(dllexport)
#else
#define AUSPEX_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define AUSPEX_API __attribute__((visibility("default")))
#else
#define AUSPEX_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define AUSPEX_VERSION_MAJOR 0
#define AUSPEX_VERSION_MINOR 1
#define AUSPEX_VERSION_PATCH 0

/** Longest draft per round. */
#define AUSPEX_MAX_DRAFT_LEN 15u

/** draft_len that the engine chooses anew for every round, from what rounds cost on this device and how many drafts this
 *  sequence's target accepted so far; 0, plain decoding, where that is expected to be faster. Only rounds whose shaders are
 *  compiled are chosen: by auspex_engine_prepare, by earlier sequences that asked for a number of drafts, or by background_threads. */
#define AUSPEX_DRAFT_LEN_AUTO 0xffffffffu

/** Token biases that a sequence may have. */
#define AUSPEX_MAX_BIASES 1024u

/** Most probable tokens whose log-probabilities a sequence may have with each token that it generates. */
#define AUSPEX_MAX_LOGPROBS 20u

typedef enum auspex_status {
    AUSPEX_OK = 0,
    AUSPEX_PENDING = 1,  /* GPU work is under way */
    AUSPEX_FINISHED = 2, /* nothing left to do */
    AUSPEX_ERROR_INVALID_ARGUMENT = -1,
    AUSPEX_ERROR_NOT_FOUND = -2,     /* a file or folder that was named does not exist */
    AUSPEX_ERROR_BAD_FILE = -3,      /* a file does not hold what it should */
    AUSPEX_ERROR_UNSUPPORTED = -4,   /* understood, but not something this build or device can do */
    AUSPEX_ERROR_OUT_OF_HOST_MEMORY = -5,
    AUSPEX_ERROR_OUT_OF_DEVICE_MEMORY = -6,
    AUSPEX_ERROR_DEVICE_LOST = -7,   /* sticky */
    AUSPEX_ERROR_CAPACITY = -8,      /* no free slot or page, or the prompt does not fit the context */
    AUSPEX_ERROR_MISMATCH = -9,      /* target and draft do not fit together */
    AUSPEX_ERROR_IO = -10,
    AUSPEX_ERROR_INTERNAL = -11,
    AUSPEX_ERROR_NO_DEVICE = -12,    /* no Vulkan device, none of that name, or not a usable one */
    AUSPEX_STATUS_MAX_ENUM = 0x7fffffff
} auspex_status;

typedef enum auspex_struct_type {
    AUSPEX_TYPE_ENGINE_DESC = 1,
    AUSPEX_TYPE_SEQUENCE_DESC = 2,
    AUSPEX_TYPE_STEP_RESULT = 3,
    AUSPEX_TYPE_SEQUENCE_STATS = 4,
    AUSPEX_TYPE_ENGINE_INFO = 5,
    AUSPEX_TYPE_VULKAN_DEVICE = 6,    /* auspex_vulkan.h */
    AUSPEX_TYPE_SYNTHETIC_MODELS = 7, /* auspex_tools.h */
    AUSPEX_TYPE_DEVICE_INFO = 8,      /* auspex_tools.h */
    AUSPEX_TYPE_MODEL_INFO = 9,       /* auspex_tools.h */
    AUSPEX_TYPE_CHAT_TURN = 10,
    AUSPEX_TYPE_SCORE_OPTIONS = 11,   /* auspex_tools.h */
    AUSPEX_TYPE_MEMORY_PLAN = 12,     /* auspex_tools.h */
    AUSPEX_TYPE_SEQUENCE_STATE = 13,
    AUSPEX_TYPE_ENGINE_LOAD = 14,
    AUSPEX_TYPE_CHAT_OPTIONS = 15,
    AUSPEX_STRUCT_TYPE_MAX_ENUM = 0x7fffffff
} auspex_struct_type;

typedef struct auspex_header {
    auspex_struct_type type;
    uint32_t size;    /* of the whole struct, as the caller compiled it */
    const void* next; /* another struct that extends this one, or NULL */
} auspex_header;

typedef enum auspex_log_level {
    AUSPEX_LOG_DEBUG = 0,
    AUSPEX_LOG_INFO = 1,
    AUSPEX_LOG_WARNING = 2,
    AUSPEX_LOG_ERROR = 3,
    AUSPEX_LOG_LEVEL_MAX_ENUM = 0x7fffffff
} auspex_log_level;

/** Receives one line of UTF-8 without a newline, on the thread that is inside an API call. Every error that a function
 *  of an engine returns is told here first, at AUSPEX_LOG_ERROR, with what was found and what was expected. */
typedef void (*auspex_log_callback)(void* user_data, auspex_log_level level, const char* message);

/** 0…1 of the weights are on the device. Called during auspex_engine_create only. */
typedef void (*auspex_progress_callback)(void* user_data, float fraction);

typedef struct auspex_engine auspex_engine;

/** A sequence of one engine. {0} is none; an id that was destroyed stays invalid for ever. */
typedef struct auspex_sequence {
    uint64_t id;
} auspex_sequence;

/** The text of a status value, never NULL. Any thread. */
AUSPEX_API const char* auspex_status_text(auspex_status status);

/** major << 22 | minor << 12 | patch of the library that is linked. Any thread. */
AUSPEX_API uint32_t auspex_version(void);

/* ---- engine ----------------------------------------------------------------------------------------------------- */

typedef enum auspex_cache_type {
    AUSPEX_CACHE_F16 = 0,
    AUSPEX_CACHE_F32 = 1,
    AUSPEX_CACHE_Q8_0 = 2, /* 8.5 bits per element: int8, and one f16 scale for 32 of them */
    AUSPEX_CACHE_TYPE_MAX_ENUM = 0x7fffffff
} auspex_cache_type;

/** Type of weight matrices on the device. Rows that are not whole blocks of a type take the next one that fits. */
typedef enum auspex_weight_type {
    AUSPEX_WEIGHTS_AS_IS = 0, /* as the file has them */
    AUSPEX_WEIGHTS_F16 = 1,
    AUSPEX_WEIGHTS_BF16 = 2,
    AUSPEX_WEIGHTS_Q8_0 = 3,
    AUSPEX_WEIGHTS_Q4_0 = 4,
    AUSPEX_WEIGHTS_Q4_K = 5,
    AUSPEX_WEIGHTS_Q6_K = 6,
    AUSPEX_WEIGHT_TYPE_MAX_ENUM = 0x7fffffff
} auspex_weight_type;

/** What is measured of a device whose cache_folder does not know it yet (nor this driver, build, these weight types and widths of models): whether
 *  passes of different row counts give the same bits, and which sizes are fastest. Neither changes any text. */
typedef enum auspex_tuning {
    AUSPEX_TUNING_AUTO = 0, /* default: what takes up to about 3 s, once; without a cache_folder up to 0.1 s, at every creation;
                               on CPUs, where compiling takes longer, nothing */
    AUSPEX_TUNING_OFF = 1,  /* nothing; what the cache_folder holds is used */
    AUSPEX_TUNING_MAX_ENUM = 0x7fffffff
} auspex_tuning;

/** A second set of the target's matrices in fewer bits, made while loading from the target's own files, which drafts for it
 *  (QSpec, Zhao et al. 2025). It reads the target's keys and values and writes into the target's cache, where every row is written
 *  again before it counts: there is no second cache, and nothing to catch up with. It takes device memory for the matrices alone.
 *  INVALID_ARGUMENT where it would save less than a quarter of the bytes of the target's matrices. */
typedef enum auspex_self_draft {
    AUSPEX_SELF_DRAFT_NONE = 0,
    AUSPEX_SELF_DRAFT_AS_IS = 1, /* the target's own types: saves nothing, and every draft is accepted; for tests */
    AUSPEX_SELF_DRAFT_Q4_0 = 2,
    AUSPEX_SELF_DRAFT_Q4_K = 3,
    AUSPEX_SELF_DRAFT_Q8_0 = 4,
    AUSPEX_SELF_DRAFT_MAX_ENUM = 0x7fffffff
} auspex_self_draft;

typedef struct auspex_engine_desc {
    auspex_header header;         /* next: auspex_vulkan_device, auspex_synthetic_models, or NULL */
    const char* target_path;      /* UTF-8; a GGUF file (of a sharded one the first) or a Hugging Face folder */
    const char* draft_path;       /* UTF-8; NULL: no draft model */
    const char* device;           /* index ("0"), part of a name, or NULL: the most capable one. Unused with a host's device */
    uint32_t max_sequences;       /* sequences with a slot at once; default 1 */
    uint32_t max_context;         /* tokens per sequence, prompt included; 0: min(target, 4096). A draft drafts as far as its own goes */
    uint32_t max_draft_len;       /* largest draft_len a sequence may ask for, ≤ AUSPEX_MAX_DRAFT_LEN; default 8 */
    auspex_cache_type cache_type; /* of K and V */
    const char* cache_folder;     /* UTF-8; where compiled pipelines and what was learnt of devices are kept; NULL: nowhere */
    auspex_log_callback log;      /* NULL: silent */
    void* log_user_data;
    auspex_progress_callback progress; /* NULL: none */
    void* progress_user_data;
    auspex_weight_type target_weights; /* matrices are converted while they are loaded; never to more bits than they have */
    auspex_weight_type draft_weights;
    auspex_tuning tuning;
    uint32_t compile_threads;     /* that a call may take while it compiles shaders, its own among them, ≤ 256; default 1 */
    uint32_t max_submission_ms;   /* predicted GPU time of one submission, as far as one stage is that short, so that no watchdog ends it and
                                     others get their turn; default 100, 0: no bound. Changes no text */
    uint32_t background_threads;  /* that compile shaders between calls, ≤ 16; default 0. They call vkCreateShaderModule and
                                     vkCreateComputePipelines and, on an llvmpipe device that the engine made itself, use a VkDevice of their own;
                                     what they finish is taken over, logged and saved inside later calls */
    auspex_self_draft self_draft_weights; /* default AUSPEX_SELF_DRAFT_NONE. Excludes a draft model */
    uint32_t prefix_cache;        /* 1 (default): beginnings of texts that were read stay in the caches as long as nobody else needs their pages, and
                                     others that begin alike are read from there on. Changes no text: only rows are shared that would come out bit
                                     for bit the same. 0: off */
    uint32_t max_waiting;         /* sequences that may wait for a slot, or for pages to begin with; default 0: one that would have to is refused */
    uint32_t max_gap_ms;          /* predicted, of what is read of prompts between two rounds of texts that are coming; default 50, 0: no bound.
                                     Changes no text */
    uint64_t cache_tokens;        /* that the pages of each cache hold, of all sequences together, at least max_context; default 0:
                                     max_sequences * max_context. With fewer, a sequence that is let in may lose its pages to others: it is parked
                                     and comes back, and says what it would have said */
} auspex_engine_desc;

/** INVALID_ARGUMENT when size is smaller than a header. Any thread. */
AUSPEX_API auspex_status auspex_engine_desc_init(auspex_engine_desc* desc, size_t size);

/** Opens the device, loads both models (ids that both know must mean the same to them; rows of padding are left out), reserves caches. Waits for uploads. *engine is NULL on error. Any thread.
 *  NVIDIA's driver can be loaded some 30 times in a process: a host that opens more engines, one after the other, keeps a VkInstance of its
 *  own open meanwhile, or gives them its device. */
AUSPEX_API auspex_status auspex_engine_create(const auspex_engine_desc* desc, auspex_engine** engine);

/** Waits for the GPU work under way and for the pipelines that background threads are just compiling, not for those they have not
 *  begun; then frees everything. NULL is allowed. It waits for ever where the device hangs and the driver does not say that it is lost:
 *  a host that wants to leave without it asks for auspex_engine_load.turn_ms before. */
AUSPEX_API void auspex_engine_destroy(auspex_engine* engine);

typedef struct auspex_engine_info {
    auspex_header header;
    char device_name[256];       /* UTF-8 */
    char driver[256];            /* name and version */
    uint32_t api_version;        /* as Vulkan packs it */
    uint32_t vocab_size;         /* the target's tokens: ids are below it; a draft may know fewer, or more that are never drafted */
    uint32_t max_context;        /* tokens per sequence */
    uint32_t max_draft_len;
    uint32_t max_sequences;
    uint32_t has_draft;          /* 1: a draft model, or the target's own weights in fewer bits, can draft */
    uint64_t device_memory_bytes; /* reserved by this engine */
    uint64_t target_weights_bytes; /* read by one plain target pass */
    uint64_t draft_weights_bytes;  /* 0 without a draft */
    char numerics_id[64];        /* devices with equal ids were built with equal reduction trees */
    uint32_t draft_context;      /* tokens of a sequence, of max_context, in which the draft model can draft; 0 without a draft */
    uint32_t is_self_draft;      /* 1: the draft is the target's own weights */
    uint32_t prompt_rows;        /* tokens of a prompt that one pass of either model holds */
    uint32_t reserved;           /* 0 */
} auspex_engine_info;

AUSPEX_API auspex_status auspex_engine_info_init(auspex_engine_info* info, size_t size);
AUSPEX_API auspex_status auspex_engine_get_info(const auspex_engine* engine, auspex_engine_info* info);

typedef struct auspex_step_result {
    auspex_header header;
    uint32_t n_active;         /* sequences that are not finished */
    uint32_t n_rounds_read;    /* rounds whose outcome became readable during this call */
    double submitted_gpu_ms;   /* predicted GPU time of what this call submitted */
} auspex_step_result;

AUSPEX_API auspex_status auspex_step_result_init(auspex_step_result* result, size_t size);

/** Reads what the GPU has finished, then submits the next work: at most gpu_budget_us of predicted GPU time (at least
 *  one segment when nothing is under way; 0 means no bound). Never waits for the GPU; prompts, plain rounds, a draft_len that
 *  was asked for by number and transforms compile their shaders here when they are first needed, unless auspex_engine_prepare did.
 *  result may be NULL.
 *  AUSPEX_PENDING: work is under way; AUSPEX_FINISHED: every sequence is finished and read, or parked by its caller. */
AUSPEX_API auspex_status auspex_engine_step(auspex_engine* engine, uint32_t gpu_budget_us, auspex_step_result* result);

/** Sleeps until the oldest work under way is done, or timeout_ms passed (AUSPEX_PENDING). Reads nothing: step does. */
AUSPEX_API auspex_status auspex_engine_wait(auspex_engine* engine, uint32_t timeout_ms);

/* ---- tokens ----------------------------------------------------------------------------------------------------- */

/** Text to token ids by the target's tokenizer; control tokens in text are text. UNSUPPORTED: the model is synthetic. add_bos: as the model asks, 0 or 1.
 *  Writes up to capacity ids; *count is the number needed. CAPACITY when they did not fit. tokens may be NULL. */
AUSPEX_API auspex_status auspex_engine_tokenize(auspex_engine* engine, const char* text, size_t text_bytes, int add_bos,
                                                uint32_t* tokens, size_t capacity, size_t* count);

/** What is said next in a conversation. */
typedef struct auspex_chat_turn {
    auspex_header header;
    uint32_t first;            /* 1 (default): opens the conversation; 0: follows an answer */
    uint32_t answer_ended;     /* unless first: 1 when the answer's last token was an end token (AUSPEX_STOP_EOS) */
    const char* system;        /* UTF-8, read when first; NULL: the model's own default, which often is none; "": none */
    const char* user;          /* UTF-8 */
    const char* date;          /* for templates that tell one ("26 Jul 2024"); NULL: the template's default */
    const char* template_name; /* "llama3", "llama3-plain", "llama2", "zephyr", "chatml"; NULL: the model's own */
} auspex_chat_turn;

AUSPEX_API auspex_status auspex_chat_turn_init(auspex_chat_turn* turn, size_t size);

/** The tokens between the answer before (or the start) and the assistant's words: a prompt for auspex_sequence_create
 *  when first, else for auspex_sequence_append. What system and user say is text, whatever it spells; control tokens come
 *  from the template alone. BOS is included as the model asks. Writes as auspex_engine_tokenize.
 *  UNSUPPORTED: template_name is NULL and the model's template is none of those named; or there is no tokenizer.
 *  MISMATCH: the vocabulary lacks a control token of the template. INVALID_ARGUMENT: user is NULL, no such template. */
AUSPEX_API auspex_status auspex_engine_encode_chat(auspex_engine* engine, const auspex_chat_turn* turn, uint32_t* tokens,
                                                   size_t capacity, size_t* count);

/** What somebody said in a conversation. */
typedef struct auspex_chat_message {
    const char* role;     /* "system", "developer" (another word for system), "user" or "assistant" */
    const char* content;  /* UTF-8; NULL where content_bytes is 0 */
    size_t content_bytes;
} auspex_chat_message;

/** How a conversation is laid out. */
typedef struct auspex_chat_options {
    auspex_header header;
    const char* date;          /* as auspex_chat_turn's; NULL: the template's default, never today */
    const char* template_name; /* as auspex_chat_turn's */
} auspex_chat_options;

AUSPEX_API auspex_status auspex_chat_options_init(auspex_chat_options* options, size_t size);

/** The tokens of a whole conversation as the model's template writes it (add_generation_prompt), oldest message first: a prompt for
 *  auspex_sequence_create, after which the assistant speaks. Equals what auspex_engine_encode_chat gives turn by turn, with the answers
 *  between, where an answer's text has the tokens that were generated. A system message that opens the conversation stands for the model's
 *  default, even if it is empty. After a last message of the assistant its next turn is opened: no message is continued. Content is text,
 *  whatever it spells. Writes as auspex_engine_tokenize; options may be NULL: all defaults. One thread at a time per engine; does not wait.
 *  INVALID_ARGUMENT: no messages, a role or content that is NULL, a role or template that does not exist.
 *  UNSUPPORTED: a message of a "tool"; roles in an order that the template does not have (llama2: after a system message user and assistant
 *  in turn); template_name is NULL and the model's template is not known; no tokenizer.
 *  MISMATCH: the vocabulary lacks a control token of the template. */
AUSPEX_API auspex_status auspex_engine_encode_messages(auspex_engine* engine, const auspex_chat_message* messages, size_t message_count,
                                                       const auspex_chat_options* options, uint32_t* tokens, size_t capacity,
                                                       size_t* count);

/* ---- sequences -------------------------------------------------------------------------------------------------- */

typedef enum auspex_stop_reason {
    AUSPEX_STOP_NONE = 0,    /* still running */
    AUSPEX_STOP_EOS = 1,     /* an end token was generated (it is the last token, and no part of the text) */
    AUSPEX_STOP_LENGTH = 2,  /* max_tokens were generated */
    AUSPEX_STOP_CONTEXT = 3, /* the context is full */
    AUSPEX_STOP_CANCELLED = 4,
    AUSPEX_STOP_TEXT = 5,    /* a stop text was generated; it and what followed is no part of the text */
    AUSPEX_STOP_REASON_MAX_ENUM = 0x7fffffff
} auspex_stop_reason;

/** Whose drafts the target checks. */
typedef enum auspex_drafter {
    AUSPEX_DRAFTER_AUTO = 0,   /* default: of those below that need nothing from the host, whichever is expected to be fastest */
    AUSPEX_DRAFTER_NONE = 1,   /* every round is plain */
    AUSPEX_DRAFTER_MODEL = 2,  /* the draft model's; without one as NONE */
    AUSPEX_DRAFTER_NGRAM = 3,  /* the most frequent continuation of the last 1 … ngram_max - 1 tokens in this text, the longest first */
    AUSPEX_DRAFTER_LOOKUP = 4, /* what followed the latest, longest match of the text's last ngram_max tokens in this text */
    AUSPEX_DRAFTER_HYBRID = 5, /* NGRAM's where its match is long, else MODEL's */
    AUSPEX_DRAFTER_HOST = 6,   /* auspex_sequence_desc.host_drafter's */
    AUSPEX_DRAFTER_SELF = 7,   /* the target, by weights of fewer bits: auspex_engine_desc.self_draft_weights; without these nobody drafts */
    AUSPEX_DRAFTER_MAX_ENUM = 0x7fffffff
} auspex_drafter;

/** How drafts are tested when temperature > 0 (greedy sampling compares tokens). Both leave the target's distribution as it is. */
typedef enum auspex_acceptance {
    AUSPEX_ACCEPT_REJECTION = 0, /* default; Leviathan et al. 2023, algorithm 1: most drafts accepted; other texts than plain sampling */
    AUSPEX_ACCEPT_COUPLED = 1,   /* shared Gumbel noise: token for token the text of plain sampling with this rule and seed, whatever the drafts */
    AUSPEX_ACCEPT_MAX_ENUM = 0x7fffffff
} auspex_acceptance;

typedef struct auspex_token_bias {
    uint32_t token;
    float bias; /* added to the token's logit after the penalties; -INFINITY bans it */
} auspex_token_bias;

/** A host's drafts: from all tokens so far (prompt and answer) to up to max_drafts tokens that may follow; returns how many it
 *  wrote, 0 for a plain round. Ids outside the vocabulary end the list. Called inside auspex_engine_step with the sequence's last round read;
 *  it must not call the engine. Whatever it drafts, the text's distribution stays the target's. */
typedef uint32_t (*auspex_draft_callback)(void* user_data, const uint32_t* tokens, size_t token_count, uint32_t max_drafts,
                                          uint32_t* drafts);

typedef struct auspex_sequence_desc {
    auspex_header header;
    const char* prompt_text;       /* UTF-8, tokenized with BOS as the model asks; used when prompt_tokens is NULL */
    size_t prompt_text_bytes;
    const uint32_t* prompt_tokens; /* verbatim, ids below vocab_size; at least one */
    size_t prompt_token_count;
    uint32_t max_tokens;           /* to generate; 0: until the context is full */
    float temperature;             /* 0: greedy (default) */
    uint64_t seed;                 /* gives its text again with the same draft_len and drafter (not HOST's); AUSPEX_DRAFT_LEN_AUTO goes by
                                      times, and another text of the same distribution may come, unless acceptance is COUPLED */
    uint32_t draft_len;            /* drafts per round, 0: plain; default AUSPEX_DRAFT_LEN_AUTO */
    uint32_t ignore_eos;           /* 1: end tokens do not stop */
    auspex_drafter drafter;
    auspex_acceptance acceptance;
    float lenience;                /* 1 (default): lossless. Below: a draft is tested as if its draft probability were this times as large
                                      (Leviathan et al. 2023, A.5): more is accepted, and the text is NO LONGER distributed as the target's */
    uint32_t ngram_max;            /* 2 … 16: tokens of the longest n-gram, or of the longest match of LOOKUP; default 4 */
    /* What is done to the logits of target and draft alike, in this order, temperature last. "Seen" are the tokens of prompt and
     * answer, and the drafts before the one in question. */
    float repeat_penalty;          /* seen tokens: a positive logit is divided by it, another multiplied; 1 (default): off */
    float presence_penalty;        /* subtracted from seen tokens; 0 (default): off */
    float frequency_penalty;       /* … times how often they were seen; 0 (default): off */
    const auspex_token_bias* biases; /* no token twice */
    size_t bias_count;             /* ≤ AUSPEX_MAX_BIASES */
    uint32_t top_k;                /* only the k most probable; ties by lowest id; 0 (default): off */
    float top_p;                   /* the fewest most probable whose sum reaches top_p of what is left; always at least one; 1 (default): off */
    float min_p;                   /* those at least min_p times as probable as the most probable; 0 (default): off */
    const char* const* stop_texts; /* UTF-8, each ends the answer before it, the one that is complete first; need a tokenizer */
    size_t stop_text_count;
    auspex_draft_callback host_drafter; /* for AUSPEX_DRAFTER_HOST, NULL otherwise */
    void* host_drafter_user_data;
    int32_t priority;              /* -10 … 10, default 0: of those that wait the lowest is let in first, and of those that are in the highest is parked
                                      first. Every 10 s of waiting count as one */
    uint32_t with_logprobs;        /* 1: auspex_sequence_read_logprobs tells of each generated token how probable it was; 0 (default): off.
                                      Changes no text. Rounds whose sequences all do without keep their cost */
    uint32_t n_logprobs;           /* ≤ AUSPEX_MAX_LOGPROBS: with_logprobs also tells so many of the most probable tokens; default 0 */
    const char* cache_salt;        /* the prefix cache gives a sequence only what others with the same salt have read, so that the time to a first token
                                      tells nobody what strangers asked; NULL (default) and "" are one salt. A fork has its source's, an
                                      appended part its sequence's */
} auspex_sequence_desc;

AUSPEX_API auspex_status auspex_sequence_desc_init(auspex_sequence_desc* desc, size_t size);

/** For a loading screen: compiles the shaders that sequences with desc's sampling and drafting will need, at any draft_len up
 *  to theirs, however many share their rounds, so that auspex_engine_step compiles none for them. Drivers without a cache of
 *  their own may take seconds; cache_folder keeps the result. desc's prompt may be empty. Waits for background threads where they
 *  compile the same, never for the GPU.
 *  INVALID_ARGUMENT: as auspex_sequence_create; OUT_OF_HOST_MEMORY, OUT_OF_DEVICE_MEMORY: what was compiled stays, try again. */
AUSPEX_API auspex_status auspex_engine_prepare(auspex_engine* engine, const auspex_sequence_desc* desc);

/** Queues a prompt. Nothing runs until auspex_engine_step. Without a free slot, or enough free pages to begin, the sequence waits, and those that
 *  are over and not destroyed may be parked for it. CAPACITY: max_waiting others wait already (the log says about how long, as auspex_engine_get_load), or the
 *  prompt leaves no room in the context; INVALID_ARGUMENT: an empty prompt, an id outside the vocabulary, a draft_len above the limit. */
AUSPEX_API auspex_status auspex_sequence_create(auspex_engine* engine, const auspex_sequence_desc* desc,
                                                auspex_sequence* sequence);

/** A second sequence with the same tokens so far, sharing cache pages. Sampling fields of desc apply (its prompt must be
 *  empty; max_tokens counts from here). Allowed at any time before `source` is destroyed; tokens that `source` has under
 *  way are not part of the fork. To complete one prompt N times, create it with AUSPEX_HOLD and fork N times. */
AUSPEX_API auspex_status auspex_sequence_fork(auspex_engine* engine, auspex_sequence source,
                                              const auspex_sequence_desc* desc, auspex_sequence* sequence);

/** max_tokens of a sequence that only reads its prompt: it generates nothing and is finished once the prompt is read. */
#define AUSPEX_HOLD 0xffffffffu

/** A finished sequence goes on: desc's prompt is put after its tokens, then up to max_tokens more are generated with desc's
 *  sampling fields. The caches keep what they hold: only the last token so far and the new ones are read. prompt_tokens is
 *  taken verbatim; prompt_text is tokenized as a text of its own, without BOS. The prompt may be empty: generation just goes on.
 *  AUSPEX_HOLD is allowed, and a sequence that holds may be appended to before its prompt is read. Tokens and text that were
 *  not taken yet stay, before those that follow.
 *  CAPACITY: the context is full, or the prompt leaves no room in it. INVALID_ARGUMENT: the sequence is still running (cancel
 *  it first), an id outside the vocabulary, a draft_len above the limit. */
AUSPEX_API auspex_status auspex_sequence_append(auspex_engine* engine, auspex_sequence sequence,
                                                const auspex_sequence_desc* desc);

/** Gives up the sequence's slot and pages, whatever state it is in, until auspex_sequence_resume; work under way for it is discarded. Its tokens, and
 *  what is not read yet, stay. Afterwards it goes on with the very text that it would have had: each position is evaluated again by the kernels that
 *  evaluated it before. Of a sequence with acceptance REJECTION that holds for a draft_len and drafter given by number and name. Forks that
 *  wait to be copied from it read their tokens themselves. INVALID_ARGUMENT: no such sequence. */
AUSPEX_API auspex_status auspex_sequence_park(auspex_engine* engine, auspex_sequence sequence);

/** Ends auspex_sequence_park: the sequence waits for a slot, before those that came after it, however many wait already. Of one
 *  that is not parked nothing changes. INVALID_ARGUMENT: no such sequence. */
AUSPEX_API auspex_status auspex_sequence_resume(auspex_engine* engine, auspex_sequence sequence);

/** Frees slot and pages; work under way for it is discarded. */
AUSPEX_API auspex_status auspex_sequence_destroy(auspex_engine* engine, auspex_sequence sequence);

/** No further tokens; those generated so far stay readable. */
AUSPEX_API auspex_status auspex_sequence_cancel(auspex_engine* engine, auspex_sequence sequence);

/** Changes draft_len from the next round that is recorded on; 0 is plain decoding. */
AUSPEX_API auspex_status auspex_sequence_set_draft_len(auspex_engine* engine, auspex_sequence sequence, uint32_t draft_len);

/** How a token came about, for display. */
typedef enum auspex_token_origin {
    AUSPEX_TOKEN_PLAIN = 0,      /* a round without drafts */
    AUSPEX_TOKEN_ACCEPTED = 1,   /* a draft the target accepted */
    AUSPEX_TOKEN_CORRECTION = 2, /* the target's token in place of a rejected draft */
    AUSPEX_TOKEN_BONUS = 3,      /* the target's token after every draft was accepted */
    AUSPEX_TOKEN_ORIGIN_MAX_ENUM = 0x7fffffff
} auspex_token_origin;

typedef struct auspex_token {
    uint32_t id;
    auspex_token_origin origin;
    uint32_t text_bytes; /* bytes of the text stream that this token completed; 0 for a control token */
} auspex_token;

/** Moves generated tokens to the caller, oldest first. *count is the number written. */
AUSPEX_API auspex_status auspex_sequence_read_tokens(auspex_engine* engine, auspex_sequence sequence, auspex_token* tokens,
                                                     size_t capacity, size_t* count);

typedef struct auspex_token_logprob {
    uint32_t id;
    float logprob; /* natural logarithm of its probability, ≤ 0 but for rounding */
} auspex_token_logprob;

typedef struct auspex_token_logprobs {
    auspex_token_logprob token; /* the one that was generated, whether or not it is among the best */
    uint32_t best_count;        /* n_logprobs of the desc, or vocab_size if that is less */
    auspex_token_logprob best[AUSPEX_MAX_LOGPROBS]; /* the most probable first, ties by lowest id; zeros after best_count */
} auspex_token_logprobs;

/** Moves log-probabilities of generated tokens to the caller, oldest first: one entry for every token that read_tokens gives, the end
 *  token included, of which the desc that it was generated by had with_logprobs. *count is the number written: 0 where none had.
 *  Independent of read_tokens and read_text. What was not taken yet stays before what auspex_sequence_append adds; a fork begins without.
 *
 *  Definition: logprob(id) = logit(id) − log Σ exp(logit), natural logarithm, over the vocabulary, of the target's logits as they were
 *  before penalties, biases, top_k, top_p, min_p and temperature. So a banned token has the log-probability that the model gave it, and a
 *  text's entries do not depend on how it was sampled, on drafts or their number, nor on other sequences: they are bit for bit those of
 *  plain decoding. A logit that is NaN has no part in the sum and comes last; its log-probability is NaN. Where the largest logit is no
 *  finite number (auspex_sequence_stats.not_finite_n), all are NaN. −INFINITY is a probability of 0.
 *  INVALID_ARGUMENT: no such sequence, count is NULL, or logprobs is NULL with a capacity. */
AUSPEX_API auspex_status auspex_sequence_read_logprobs(auspex_engine* engine, auspex_sequence sequence, auspex_token_logprobs* logprobs,
                                                       size_t capacity, size_t* count);

/** Moves generated text (UTF-8, whole characters only, no terminator) to the caller. Independent of read_tokens.
 *  At the end of a sequence what is left of an incomplete character becomes U+FFFD. */
AUSPEX_API auspex_status auspex_sequence_read_text(auspex_engine* engine, auspex_sequence sequence, char* text,
                                                   size_t capacity, size_t* bytes);

/** Every token before the latest generation: the prompt, and of a sequence that was appended to all that came before, too;
 *  as auspex_engine_tokenize. */
AUSPEX_API auspex_status auspex_sequence_get_prompt(auspex_engine* engine, auspex_sequence sequence, uint32_t* tokens,
                                                    size_t capacity, size_t* count);

/** Of the latest part: everything but prompt_n and total_n starts anew with auspex_sequence_append ("creation" is then that
 *  call). Callers that want sums over a conversation add them up. */
typedef struct auspex_sequence_stats {
    auspex_header header;
    auspex_stop_reason stop_reason;
    uint32_t prompt_n;         /* tokens before the latest generation */
    uint32_t predicted_n;      /* tokens generated, the end token included */
    double prompt_ms;          /* wall time from creation to the first round's begin: what comes before it is done; < 0: not available */
    double first_token_ms;     /* wall time from creation to the first token; < 0: not available */
    double predicted_ms;       /* wall time from the first round's begin to the last token; < 0: not available */
    uint32_t rounds;           /* with at least one emitted token */
    uint32_t draft_n;          /* drafts tested, up to a stop or limit */
    uint32_t draft_n_accepted;
    double draft_ms;           /* GPU time of this sequence's rounds (shared rounds count whole); < 0: not available */
    double verify_ms;
    double accept_ms;
    uint32_t accepted_histogram[AUSPEX_MAX_DRAFT_LEN + 1]; /* [a]: rounds that accepted a drafts */
    uint32_t prefilled_n;      /* tokens that prompt passes read through the target; the others' rows were in the cache */
    uint32_t total_n;          /* tokens in all: prompt_n + predicted_n */
    uint32_t tested_n;         /* drafts the test looked at: in each round up to the first rejected one */
    double overlap;            /* Σ min(1, target / draft probability) over those. overlap / tested_n estimates α, the mean overlap
                                  Σ min(target, draft) of the two distributions (Leviathan et al. 2023, theorem 3.5), without bias */
    uint32_t drafter_rounds[5]; /* rounds that tested drafts of: nobody, the model, n-grams, lookup, the host */
    double c, v;               /* as last measured on this device: draft pass and verify pass of the usual round / plain target pass; < 0: not yet */
    double predicted_speedup;  /* that the engine expected of its choices over plain decoding; < 0: it had nothing to choose */
    char choice[160];          /* UTF-8: what was chosen last and why; "" when draft_len and drafter were given */
    uint32_t not_finite_n;     /* tokens from logits of the target of which the largest is no finite number: they mean nothing.
                                  Weights that are damaged, or too large for their type */
    uint32_t self_drafter_rounds; /* rounds that tested drafts of AUSPEX_DRAFTER_SELF */
    uint32_t cached_n;         /* tokens that were to be read, and were in the cache from other sequences */
} auspex_sequence_stats;

AUSPEX_API auspex_status auspex_sequence_stats_init(auspex_sequence_stats* stats, size_t size);
AUSPEX_API auspex_status auspex_sequence_get_stats(const auspex_engine* engine, auspex_sequence sequence,
                                                   auspex_sequence_stats* stats);

typedef enum auspex_phase {
    AUSPEX_PHASE_WAITING = 0,  /* for a slot or pages, for the first time or again */
    AUSPEX_PHASE_PROMPT = 1,   /* its prompt is being read */
    AUSPEX_PHASE_RUNNING = 2,  /* it generates */
    AUSPEX_PHASE_FINISHED = 3, /* nothing is under way for it; auspex_sequence_append may go on */
    AUSPEX_PHASE_PARKED = 4,   /* by auspex_sequence_park */
    AUSPEX_PHASE_MAX_ENUM = 0x7fffffff
} auspex_phase;

/** Where a sequence is. */
typedef struct auspex_sequence_state {
    auspex_header header;
    auspex_phase phase;
    uint32_t place;         /* of one that waits: how many are before it */
    double wait_ms;         /* of one that waits: about how long it will; < 0: not known */
    uint32_t rows_read;     /* tokens before the next one to be said that the target has evaluated, or is about to; after having been parked they begin at 0 again */
    uint32_t rows_to_read;  /* … that it has to before it can say one */
    uint32_t parked_n;      /* times that it lost its slot */
} auspex_sequence_state;

AUSPEX_API auspex_status auspex_sequence_state_init(auspex_sequence_state* state, size_t size);
/** INVALID_ARGUMENT: no such sequence. */
AUSPEX_API auspex_status auspex_sequence_get_state(auspex_engine* engine, auspex_sequence sequence, auspex_sequence_state* state);

/** What an engine has to do. */
typedef struct auspex_engine_load {
    auspex_header header;
    uint32_t n_running;        /* sequences with a slot that are not finished */
    uint32_t n_waiting;        /* without one */
    uint64_t waiting_tokens;   /* of their prompts and, as far as they have been in before, of what they said */
    double wait_ms;            /* that a sequence which came now would wait, about; < 0: not known */
    uint32_t target_pages, target_pages_free; /* of its cache; free ones, and those that nobody would miss */
    uint32_t draft_pages, draft_pages_free;
    uint64_t parked_n;         /* times that a sequence lost its slot, since the engine was created */
    uint64_t prefix_queries, prefix_tokens, prefix_hit_tokens; /* of the prefix cache since then: how often it was asked, for how many tokens, and how many it had */
    uint64_t prefix_pages_inserted, prefix_pages_evicted; /* of both caches */
    double turn_ms;          /* how long the device has been at the oldest round or part of a prompt that it was given whole; 0: at none */
    double turn_expected_ms; /* what that takes, as far as known from others of its kind, else by its bytes. A device may hang without being lost */
    uint32_t target_pages_evictable, draft_pages_evictable; /* of the free ones: those that the prefix cache holds, and gives up when others need them */
} auspex_engine_load;

AUSPEX_API auspex_status auspex_engine_load_init(auspex_engine_load* load, size_t size);
AUSPEX_API auspex_status auspex_engine_get_load(auspex_engine* engine, auspex_engine_load* load);

#ifdef __cplusplus
}
#endif

#endif
