// Flags of quantize.
#include "cli/common/input/shared_flags.h"
#include "cli/quantize/options.h"

namespace auspex::cli {

namespace {

constexpr const char* kQuantizeNotes = "Examples:\n"
                                       "  auspex quantize llama-3b llama-3b-q4_k.gguf --type q4_k\n"
                                       "  auspex quantize model.gguf smaller.gguf --type q8_0 --force\n\n";

} // namespace

void declare_quantize(CLI::App& app, QuantizeOptions& options) {
    app.add_option("IN", options.input, "Model: a GGUF file or a Hugging Face folder");
    app.add_option("OUT", options.output, "GGUF file to write");
    std::vector<std::pair<std::string, std::optional<auspex_weight_type>>> types;
    for (const auto& [name, type] : weight_types())
        types.emplace_back(name, type);
    add_choice<std::optional<auspex_weight_type>>(
        app, "--type", "TYPE",
        "Type of the matrices: q8_0, q6_k, q4_k, q4_0, f16, bf16 or as-is; never more bits than they have",
        options.type, types);
    app.add_flag("-y,--force", options.may_overwrite, "Overwrite OUT if it exists");
    app.footer(std::string(kQuantizeNotes) + kExitCodes);
}

void complete(const QuantizeOptions& options) {
    if (options.input.empty() || options.output.empty())
        throw Failure(kExitUsage, "quantize: expected a model and the GGUF file to write "
                                  "(auspex quantize IN OUT --type TYPE)");
    if (!options.type) throw Failure(kExitUsage, "--type: expected the type to write, e.g. --type q4_k");
}

} // namespace auspex::cli
