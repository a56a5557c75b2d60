// A model into one GGUF file: weights in a wanted type, with the vocabulary and chat template that belong to them.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "tensor/dtype.h"

#include <functional>
#include <optional>
#include <string>

namespace auspex {

// `path` as open_checkpoint's; type none: matrices stay as they are. progress: 0…1 of the tensor bytes are written.
// The file appears under its name only when it is whole.
Status quantize_model(const std::string& path, const std::string& gguf_path, std::optional<DType> type,
                      const std::function<void(float)>& progress, const Logger& log);

} // namespace auspex
