// What auspex_engine* points to, and what both interfaces say of it and read from their enumerations.
#pragma once

#include "api/guard.h"

#include "session/engine.h"

#include <auspex/auspex.h>

#include <optional>

struct auspex_engine {
    std::unique_ptr<auspex::Engine> engine;
};

namespace auspex {

inline const char* const kNoStruct = "a struct is NULL or was not initialised by its auspex_..._init";
inline const char* const kNoPointer = "a pointer that must be set is NULL";
inline const char* const kNoWeightType = "a weight type is not one of auspex_weight_type";

// For what is wrong before the engine is asked.
inline auspex_status refuse(const auspex_engine* engine, const char* why) {
    return engine ? to_public({Code::invalid_argument, why}, engine->engine->log()) : AUSPEX_ERROR_INVALID_ARGUMENT;
}

// The struct of this type in the chain that a header begins, or null.
inline const auspex_header* find_extension(const auspex_header& header, auspex_struct_type type) {
    for (auto* at = static_cast<const auspex_header*>(header.next); at; at = static_cast<const auspex_header*>(at->next))
        if (at->type == type) return at;
    return nullptr;
}

// What a caller's turn says. The text says why it is refused, or is null.
inline const char* read_chat_turn(const auspex_chat_turn* turn, ChatRequest& out) {
    auspex_chat_turn t;
    auspex_chat_turn_init(&t, sizeof t);
    if (!read_struct(turn, AUSPEX_TYPE_CHAT_TURN, t)) return kNoStruct;
    if (!t.user) return "user is NULL, expected what the user says";
    out.turn = {.first = t.first != 0, .system = t.system ? t.system : "", .date = t.date ? t.date : "", .user = t.user};
    if (t.template_name) out.layout = t.template_name;
    out.default_system = t.system == nullptr;
    out.answer_ended = t.answer_ended != 0;
    return nullptr;
}

// The same of a conversation; options may be null.
inline const char* read_messages(const auspex_chat_message* messages, size_t count, const auspex_chat_options* options, MessagesRequest& out) {
    if (!messages && count > 0) return kNoPointer;
    auspex_chat_options o;
    auspex_chat_options_init(&o, sizeof o);
    if (options && !read_struct(options, AUSPEX_TYPE_CHAT_OPTIONS, o)) return kNoStruct;
    for (size_t i = 0; i < count; ++i) {
        const auspex_chat_message& message = messages[i];
        if (!message.role || (!message.content && message.content_bytes > 0)) return kNoPointer;
        out.messages.push_back({message.role, message.content ? std::string(message.content, message.content_bytes) : std::string()});
    }
    if (o.template_name) out.layout = o.template_name;
    if (o.date) out.date = o.date;
    return nullptr;
}

// False: no such type. AS_IS leaves `out` empty.
inline bool to_dtype(auspex_weight_type type, std::optional<DType>& out) {
    switch (type) {
    case AUSPEX_WEIGHTS_AS_IS: return true;
    case AUSPEX_WEIGHTS_F16: out = DType::f16; return true;
    case AUSPEX_WEIGHTS_BF16: out = DType::bf16; return true;
    case AUSPEX_WEIGHTS_Q8_0: out = DType::q8_0; return true;
    case AUSPEX_WEIGHTS_Q4_0: out = DType::q4_0; return true;
    case AUSPEX_WEIGHTS_Q4_K: out = DType::q4_k; return true;
    case AUSPEX_WEIGHTS_Q6_K: out = DType::q6_k; return true;
    default: return false;
    }
}

// Tells the log and answers what is wrong with `d`, whose log is `log`; the pointers in it must live as long as `inner`.
auspex_status read_engine_desc(const auspex_engine_desc& d, const Logger& log, EngineDesc& inner);

// nullopt: not one of the enumeration's values.
inline std::optional<DType> cache_dtype_of(auspex_cache_type type) {
    switch (type) {
    case AUSPEX_CACHE_F16: return DType::f16;
    case AUSPEX_CACHE_F32: return DType::f32;
    case AUSPEX_CACHE_Q8_0: return DType::q8_0;
    default: return std::nullopt;
    }
}

} // namespace auspex
