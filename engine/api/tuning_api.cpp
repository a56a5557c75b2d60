// The tuning part of the unstable C interface: measuring a device, and what is known of it.
#include "api/engine_handle.h"

#include <auspex/auspex_tools.h>

using namespace auspex;

namespace {

auspex_status tune(const auspex_engine_desc* desc, bool measure, auspex_tuning_callback each, void* user_data, auspex_tuning_report* report) {
    auspex_engine_desc d;
    auspex_engine_desc_init(&d, sizeof d);
    if (!read_struct(desc, AUSPEX_TYPE_ENGINE_DESC, d)) return AUSPEX_ERROR_INVALID_ARGUMENT;
    const Logger log = make_logger(d.log, d.log_user_data);
    if (!write_struct(report, AUSPEX_TYPE_TUNING_REPORT, {})) return to_public({Code::invalid_argument, kNoStruct}, log); // before anything is done
    EngineDesc inner;
    if (auto status = read_engine_desc(d, log, inner); status != AUSPEX_OK) return status;
    inner.tuning = measure ? TuningMode::full : TuningMode::off;
    std::string device, driver;
    inner.adjust_caps = [&](DeviceCaps& caps) { device = caps.name, driver = caps.driver; };
    auto tuned = Engine::tune(inner, log);
    if (!tuned.ok()) return to_public(tuned.status(), log);
    const DeviceTuning& t = tuned.value();
    auspex_tuning_report value = {};
    copy_text(value.device_name, device);
    copy_text(value.driver, driver);
    copy_text(value.numerics_id, t.tuning.numerics_id());
    copy_text(value.sizes, t.tuning.sizes());
    value.rows_agree = t.rows == RowCounts::agree ? 1 : t.rows == RowCounts::differ ? 0 : -1;
    copy_text(value.difference, t.difference);
    value.is_timed = t.is_timed ? 1 : 0;
    value.is_kept = t.is_kept ? 1 : 0;
    value.is_complete = t.is_complete ? 1 : 0;
    for (const KnobTime& time : t.times) {
        const auspex_tuning_candidate candidate = {time.knob.c_str(), time.candidate.c_str(), time.ms, time.is_default ? 1u : 0u, time.is_chosen ? 1u : 0u};
        if (each) each(user_data, &candidate);
    }
    write_struct(report, AUSPEX_TYPE_TUNING_REPORT, value);
    return AUSPEX_OK;
}

} // namespace

extern "C" {

auspex_status auspex_tuning_report_init(auspex_tuning_report* report, size_t size) {
    return init_struct(report, size, AUSPEX_TYPE_TUNING_REPORT);
}

auspex_status auspex_tune(const auspex_engine_desc* desc, auspex_tuning_callback each, void* user_data, auspex_tuning_report* report) {
    return guard([&] { return tune(desc, true, each, user_data, report); });
}

auspex_status auspex_describe_tuning(const auspex_engine_desc* desc, auspex_tuning_report* report) {
    return guard([&] { return tune(desc, false, nullptr, nullptr, report); });
}

} // extern "C"
