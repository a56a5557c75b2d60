// Decides by the bytes of the weights, and by how many sequences there may be.
#include "cli/common/engine/llvmpipe_threads.h"

#include "cli/common/system/terminal.h"

namespace auspex::cli {

void keep_llvmpipe_from_waking_threads(const Client::Request& request) {
    constexpr const char* variable = "LP_NUM_THREADS";
    constexpr uint64_t small_weights = 48u << 20;
    if (environment(variable) || request.synthetic != nullptr) return;
    if (request.max_sequences > 1 && !request.often_one) return;
    auspex_model_info info;
    auspex_model_info_init(&info, sizeof info);
    const auspex_status status =
        auspex_model_describe(request.models.target.c_str(), request.models.cache_type, &info, nullptr, nullptr);
    if (status >= 0 && info.weights_bytes <= small_weights) set_environment(variable, "0");
}

} // namespace auspex::cli
