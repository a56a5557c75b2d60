// The measuring part of the unstable C interface: single passes, memory bandwidth, simulated acceptance.
#include "api/engine_handle.h"

#include <auspex/auspex_tools.h>

#include <algorithm>

using namespace auspex;

extern "C" {

auspex_status auspex_simulated_acceptance_init(auspex_simulated_acceptance* simulated, size_t size) {
    return init_struct(simulated, size, AUSPEX_TYPE_SIMULATED_ACCEPTANCE);
}
auspex_status auspex_pass_desc_init(auspex_pass_desc* desc, size_t size) {
    return init_struct(desc, size, AUSPEX_TYPE_PASS_DESC, [](auspex_pass_desc& value) {
        value.n_rows = 1;
        value.repetitions = 5;
    });
}
auspex_status auspex_pass_times_init(auspex_pass_times* times, size_t size) {
    return init_struct(times, size, AUSPEX_TYPE_PASS_TIMES);
}

auspex_status auspex_engine_measure_copy(auspex_engine* engine, uint32_t repetitions, auspex_copy_speed* speed) {
    return guard([&] {
        if (!engine || !speed) return refuse(engine, kNoPointer);
        auto measured = engine->engine->measure_copy(repetitions);
        if (!measured.ok()) return to_public(measured.status(), engine->engine->log());
        const CopySpeed& copy = measured.value();
        *speed = {copy.bytes, copy.ms, copy.gb_per_second()};
        return AUSPEX_OK;
    });
}

auspex_status auspex_engine_measure_pass(auspex_engine* engine, const auspex_pass_desc* desc, auspex_pass_times* times) {
    return guard([&] {
        if (!engine) return AUSPEX_ERROR_INVALID_ARGUMENT;
        auspex_pass_desc d;
        auspex_pass_desc_init(&d, sizeof d);
        if (!read_struct(desc, AUSPEX_TYPE_PASS_DESC, d) || !write_struct(times, AUSPEX_TYPE_PASS_TIMES, {})) return refuse(engine, kNoStruct);
        auto measured = engine->engine->measure_pass({.of = d.of_draft != 0 ? ModelRole::draft : ModelRole::target,
                                                      .kind = d.is_prompt != 0 ? PassKind::prompt : PassKind::rows,
                                                      .n_rows = d.n_rows,
                                                      .depth = d.depth,
                                                      .repetitions = d.repetitions,
                                                      .stages = d.with_stages != 0});
        if (!measured.ok()) return to_public(measured.status(), engine->engine->log());
        const PassTimes& p = measured.value();
        auspex_pass_times value = {};
        value.gpu_ms = p.gpu_ms;
        value.least_ms = p.least_ms;
        value.most_ms = p.most_ms;
        value.wall_ms = p.wall_ms;
        value.n_dispatches = p.n_dispatches;
        value.n_barriers = p.n_barriers;
        value.weights_bytes = p.weights_bytes;
        value.cache_bytes = p.cache_bytes;
        value.flops = p.flops;
        value.n_stages = static_cast<uint32_t>(std::min<size_t>(p.stages.size(), AUSPEX_MAX_STAGES));
        for (uint32_t i = 0; i < value.n_stages; ++i) {
            copy_text(value.stages[i].name, region_name(p.stages[i].stage));
            value.stages[i].count = p.stages[i].count;
            value.stages[i].ms = p.stages[i].ms;
        }
        return write_struct(times, AUSPEX_TYPE_PASS_TIMES, value) ? AUSPEX_OK : refuse(engine, kNoStruct);
    });
}

} // extern "C"
