// auspex info: the devices Vulkan offers, models as their headers describe them, and the memory they would take.
#include "cli/common/engine/client.h"
#include "cli/common/output/print_report.h"
#include "cli/info/report.h"

namespace auspex::cli {

int info(const InfoOptions& options) {
    InfoReport report;
    for (const std::string& path : {options.models.target, options.models.draft})
        if (!path.empty()) report.models.emplace_back(path, describe_model(path, options.models.cache_type));

    LibraryLog log;
    auspex_status status = AUSPEX_OK;
    while (true) {
        auspex_device_info device;
        auspex_device_info_init(&device, sizeof device);
        const auto index = static_cast<uint32_t>(report.devices.size());
        status = auspex_device_describe(index, &device, LibraryLog::callback, &log);
        if (status < 0) break;
        report.devices.push_back(device);
    }
    // NOT_FOUND ends the list. Without any device (NO_DEVICE) there still may be a model to describe.
    const bool found_none = report.devices.empty() && report.models.empty();
    const bool at_end = status == AUSPEX_ERROR_NOT_FOUND || status == AUSPEX_ERROR_NO_DEVICE;
    if (!at_end || found_none) throw Failure(kExitDevice, with_drivers(status, log.error_line(status)));
    if (!options.models.target.empty() && !report.devices.empty()) {
        const Client::Request request = {.models = options.models, .max_draft_len = SamplingOptions().max_draft_len()};
        report.tuning = describe_tuning(request);
        report.plan = plan_memory(request);
        if (options.models.may_self_draft) report.self_draft = judge_self_draft(request);
    }

    print_report(report, options.json);
    return kExitOk;
}

} // namespace auspex::cli
