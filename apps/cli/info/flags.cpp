// Flags of info.
#include "cli/common/input/shared_flags.h"
#include "cli/info/options.h"

namespace auspex::cli {

void declare_info(CLI::App& app, InfoOptions& options, Shared& shared) {
    add_models(app, shared, options.models, "it is described too, with the memory it would take");
    add_device(app, options.models);
    app.add_flag("--json", options.json, "One JSON object");
    app.footer(kExitCodes);
}

void complete(InfoOptions& options, const Shared& shared) {
    check_paths(shared);
    check_device(options.models);
    options.models.target = shared.target.value_or("");
    options.models.draft = shared.draft.value_or("");
    options.models.self_draft = options.models.self_quant.value_or(AUSPEX_SELF_DRAFT_NONE);
    options.models.may_self_draft = shared.target && !shared.draft && !options.models.self_quant;
    if (shared.draft && options.models.self_quant) throw Failure(kExitUsage, "--self-quant and -md exclude each other: one of them drafts");
}

} // namespace auspex::cli
