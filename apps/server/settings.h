// What a server is told before it starts.
#pragma once

#include "openai/logprobs.h"
#include "openai/request.h"
#include "server/http/http_server.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace auspex::server {

struct Settings {
    http::Options http{};
    std::vector<std::string> keys{};          // none: no key is asked for
    std::vector<std::string> allowed_hosts{}; // names in Host besides localhost and addresses
    std::vector<std::string> cors_origins{};  // pages of others that may ask
    uint32_t slots = 16;                      // sequences that run at once
    uint32_t queue = 64;                      // and that wait
    uint64_t queue_tokens = 0;                // that these may have to read; 0: any number
    int overload_status = 429;
    std::chrono::milliseconds drain{30000};      // that running answers have after SIGTERM
    std::chrono::milliseconds most_pause{30000}; // of an answer whose reader is too slow
    std::chrono::milliseconds silence{15000};    // of a stream, until it says that it is still there
    std::chrono::milliseconds stuck{5000};       // without a sign of the engine's thread, or of the device, it counts as hanging
    bool has_page = true;
    bool is_model_strict = false; // another name than the model's own is refused
    bool is_salted_by_key = false; // known beginnings are shared by requests of one key alone

    uint32_t most_alive() const { return slots + queue; }
};

// A model's tokens. Any thread.
struct Vocabulary {
    std::function<std::vector<uint32_t>(const std::string& text, bool add_bos, bool parse_control)> encode;
    // As the model's template lays a conversation out. Throws openai::RequestError.
    std::function<std::vector<uint32_t>(const std::vector<openai::Message>& messages)> apply_chat_template;
    std::function<std::string(const std::vector<uint32_t>& ids)> decode; // with the spellings of control tokens
    openai::Pieces piece;
};

// What holds where a request says nothing of drafts, as requests would say it.
struct Speculation {
    std::optional<uint32_t> draft_len{}; // none: auto
    std::string drafter = "auto", acceptance = "rejection";
};

// What /props, /v1/models and /metrics tell of what is behind the server.
struct About {
    std::string model{};      // as answers call it
    std::string model_path{}; // of the target
    std::string version{}, numerics{}, device{}, driver{};
    openai::Limits limits{};
    Speculation speculation{};
    int64_t created = 0; // seconds since 1970
    Vocabulary vocabulary{};
};

} // namespace auspex::server
