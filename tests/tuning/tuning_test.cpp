// What is measured of a device: planted faults in one row count are found and made harmless, sizes that were chosen change
// no bit, and nothing that a kept file says can do harm.
#include "base/replace_file.h"
#include "formats/json.h"
#include "session/gpu_contents.h"
#include "kernels/embedded_shaders.h"
#include "session/tuning/prompt_check.h"
#include "session/tuning/row_comparison.h"
#include "session/tuning/tuning_store.h"
#include "test_shaders.h"
#include "tuning/tuning_fixture.h"

#include <set>

namespace auspex::tuning_test {
namespace {

using namespace test;
using nlohmann::json;

// faults.cmake: 1: tiles of 4 rows round otherwise; 2: the second row of a tile does (of the wide variants: of 8 rows).
void plant(KernelLibrary& kernels, bool second_row) {
    const auto replace = [&](const std::string& shader, const char* fault) {
        ASSERT_FALSE(test_shader(shader + fault).empty()) << shader;
        kernels.replace(shader, test_shader(shader + fault));
    };
    for (const char* shader : {"matvec", "matvec.subgroup"}) replace(shader, second_row ? ".fault2" : ".fault1");
    replace("matvec.wide.rows4", ".fault1");
    if (second_row) replace("matvec.wide.rows8", ".fault2");
}

struct Story {
    std::vector<uint32_t> tokens;
    std::vector<std::byte> cache; // of the target
};
// Greedy, with drafts of 3: verify passes have 4 rows.
Story tell(Engine& engine, uint32_t draft_len) {
    Story story;
    auto id = engine.create_sequence(Job{.prompt = random_prompt(9, kVocab, 5), .max_tokens = 40, .draft_len = draft_len}.request());
    EXPECT_TRUE(id.ok()) << id.status().message();
    drive(engine);
    const LiveSequence& sequence = *find_sequence(engine, id.value());
    story.tokens = sequence.tokens;
    story.cache = cache_rows(engine, engine.target(), sequence.slot->number, static_cast<uint32_t>(sequence.tokens.size()) - 1);
    EXPECT_TRUE(destroy_sequence(engine, id.value()).ok());
    return story;
}
void expect_same(const Engine& engine, const Story& a, const Story& b) {
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(first_difference(engine.target().cache().shape(), a.cache, b.cache), "");
}

// What a full pass over `pair` keeps, made once.
const std::string& kept_text() {
    static const std::string text = [] {
        Folder folder("full");
        EngineDesc desc = pair(folder.path.string(), TuningMode::full);
        float last = -1;
        bool rises = true;
        desc.progress = [&](float fraction) {
            rises = rises && fraction >= last && fraction <= 1;
            last = fraction;
        };
        auto tuned = Engine::tune(desc, warnings_to_stderr());
        EXPECT_TRUE(tuned.ok()) << tuned.status().message();
        if (!tuned.ok()) return std::string();
        const DeviceTuning& t = tuned.value();
        EXPECT_EQ(t.rows, RowCounts::agree) << t.difference;
        EXPECT_TRUE(t.is_kept && !t.is_from_store);
        EXPECT_TRUE(rises);
        if (t.is_timed) {
            EXPECT_FALSE(t.times.empty());
            EXPECT_EQ(last, 1);
        }
        for (const KnobTime& time : t.times)
            EXPECT_TRUE(time.ms > 0 || !t.is_complete) << time.knob << " " << time.candidate;
        auto file = read_text_file(folder.kept(), 1 << 20);
        EXPECT_TRUE(file.ok()) << file.status().message();
        return file.ok() ? file.value() : std::string();
    }();
    return text;
}

// What an engine of `pair` would use of a file with this text.
DeviceTuning used_of(const std::string& text, std::string* warnings = nullptr) {
    Folder folder("use");
    EXPECT_TRUE(replace_file(folder.kept(), text).ok());
    Lines lines;
    auto tuned = Engine::tune(pair(folder.path.string()), lines.log());
    EXPECT_TRUE(tuned.ok()) << tuned.status().message();
    if (warnings) *warnings = lines.text;
    return tuned.ok() ? std::move(tuned).value() : DeviceTuning{};
}

Tuning base_tuning() {
    auto tuned = Engine::tune(pair(), {});
    EXPECT_TRUE(tuned.ok());
    return tuned.value().tuning;
}

TEST(Tuning, what_was_measured_is_kept_and_used) {
    ASSERT_FALSE(kept_text().empty());
    std::string warnings;
    const DeviceTuning used = used_of(kept_text(), &warnings);
    EXPECT_TRUE(used.is_from_store);
    EXPECT_EQ(used.rows, RowCounts::agree);
    EXPECT_EQ(warnings, "");
    for (const char* part : {"device", "driver", "shaders", "formats", "widths", "numerics"}) {
        json other = json::parse(kept_text());
        other["entries"][0][part] = "\"another\"";
        EXPECT_FALSE(used_of(other.dump()).is_from_store) << part;
    }
}

// Every choice at once: the same text, the same cache.
TEST(Tuning, choices_change_no_bit) {
    auto untuned = make_engine(pair());
    ASSERT_TRUE(untuned);
    const Story expected = tell(*untuned, 0);
    expect_same(*untuned, tell(*untuned, 3), expected);
    for (const json& choice : {json{{"wide", false}, {"outs", 16}, {"many_outs", 4}, {"teams", 2}, {"ahead", 4}, {"many_ahead", 2}, {"rows", {1, 8}}, {"vocab_threads", 64}, {"attention_rows", 2}, {"norm_stage_rows", 3}, {"staged_bytes", untuned->device().caps.max_shared_memory_bytes}},
                               json{{"texels", untuned->tuning().wide && !untuned->tuning().texels}, {"norm_stage_rows", untuned->tuning().norm_stage_rows == 0 ? 1 : 0}, {"outs", untuned->tuning().matvec_outs},
                                    {"rows", {1, 2, 8}}, {"block_rows", {1, 8}}, {"attention_rows", 1}}}) {
        Folder folder("choice");
        json kept = json::parse(kept_text());
        kept["entries"][0].update(choice);
        ASSERT_TRUE(replace_file(folder.kept(), kept.dump()).ok());
        auto tuned = make_engine(pair(folder.path.string()));
        ASSERT_TRUE(tuned);
        EXPECT_TRUE(tuned->device_tuning().is_from_store) << choice;
        EXPECT_EQ(tuned->tuning().matvec_rows, choice["rows"].get<std::vector<uint32_t>>());
        EXPECT_EQ(tuned->tuning().matvec_outs, choice["outs"].get<uint32_t>());
        EXPECT_EQ(tuned->tuning().attention_rows, choice["attention_rows"].get<uint32_t>());
        expect_same(*tuned, tell(*tuned, 0), expected);
        expect_same(*tuned, tell(*tuned, 3), expected);
    }
}

// Without the comparison the fault is there to be seen; with it every pass runs through the largest tiles.
TEST(Tuning, a_row_count_that_differs_is_found_and_made_harmless) {
    EngineDesc desc = pair();
    desc.adjust_kernels = [](KernelLibrary& kernels) { plant(kernels, false); };
    {
        auto faulty = make_engine(desc);
        ASSERT_TRUE(faulty);
        const Story plain = tell(*faulty, 0), drafted = tell(*faulty, 3);
        EXPECT_TRUE(plain.tokens != drafted.tokens || plain.cache != drafted.cache) << "the planted fault changes nothing";
    }
    Folder folder("fault");
    desc.cache_folder = folder.path.string();
    desc.tuning = TuningMode::full;
    desc.tuning_limits.full_ms = 0; // rows only
    Lines lines;
    auto tuned = Engine::tune(desc, lines.log());
    ASSERT_TRUE(tuned.ok()) << tuned.status().message();
    EXPECT_EQ(tuned.value().rows, RowCounts::differ);
    EXPECT_NE(tuned.value().difference.find("matvec of f32, "), std::string::npos) << tuned.value().difference;
    EXPECT_NE(lines.text.find("do not give the same bits"), std::string::npos) << lines.text;
    EXPECT_EQ(tuned.value().tuning.matvec_rows, std::vector<uint32_t>{base_tuning().matvec_rows.back()});
    EXPECT_EQ(tuned.value().tuning.matvec_quant_rows.size(), 1u);

    for (const TuningMode mode : {TuningMode::off, TuningMode::automatic}) { // both know it from the file, and say so
        Lines again;
        desc.tuning = mode;
        auto engine = Engine::create(desc, again.log());
        ASSERT_TRUE(engine.ok()) << engine.status().message();
        EXPECT_NE(again.text.find("do not give the same bits"), std::string::npos) << again.text;
        const Story plain = tell(*engine.value(), 0);
        expect_same(*engine.value(), tell(*engine.value(), 3), plain);
        expect_same(*engine.value(), tell(*engine.value(), 5), plain);
    }
}

// Tiles whose second row differs are no way out either.
TEST(Tuning, the_padded_variant_agrees_with_itself) {
    Folder folder("rows");
    EngineDesc desc = pair(folder.path.string(), TuningMode::full);
    desc.tuning_limits.full_ms = 0; // rows only
    desc.adjust_kernels = [](KernelLibrary& kernels) { plant(kernels, true); };
    auto tuned = Engine::tune(desc, {});
    ASSERT_TRUE(tuned.ok()) << tuned.status().message();
    EXPECT_EQ(tuned.value().rows, RowCounts::differ);
    ASSERT_EQ(tuned.value().tuning.matvec_rows.size(), 1u);
    EXPECT_NE(tuned.value().tuning.matvec_rows[0], base_tuning().matvec_rows.back());
    desc.tuning = TuningMode::off;
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    EXPECT_EQ(engine->tuning(), tuned.value().tuning);
    expect_same(*engine, tell(*engine, 3), tell(*engine, 0));
}

// The candidate of a knob that was chosen, of so many that must all have been timed.
std::string chosen_of(const DeviceTuning& tuned, const std::string& knob, size_t n_candidates) {
    std::string chosen;
    size_t n = 0, n_chosen = 0;
    for (const KnobTime& time : tuned.times) {
        if (time.knob != knob) continue;
        ++n;
        EXPECT_GT(time.ms, 0) << knob << " " << time.candidate;
        if (time.is_chosen) chosen = time.candidate;
        n_chosen += time.is_chosen;
    }
    EXPECT_EQ(n, n_candidates) << knob;
    EXPECT_EQ(n_chosen, n > 0 ? 1u : 0u) << knob;
    return chosen;
}

TEST(Tuning, first_use_measures_once) {
    Folder folder("auto");
    EngineDesc desc = as_gpu(folder.path.string(), TuningMode::automatic);
    desc.tuning_limits.once_ms = 300'000; // it is a slow one
    std::set<uint32_t> attention_rows;    // that kernels were made for
    std::set<std::pair<uint32_t, uint32_t>> tiles, all_tiles;
    desc.adjust_kernels = [&](KernelLibrary& kernels) {
        attention_rows.insert(kernels.tuning().attention_rows);
        tiles.insert({kernels.tuning().matrix_rows, kernels.tuning().matrix_outs});
    };
    auto first = make_engine(desc);
    ASSERT_TRUE(first);
    desc.adjust_kernels = nullptr;
    if (const DeviceTuning& tuned = first->device_tuning(); tuned.is_timed) {
        EXPECT_EQ(chosen_of(tuned, "attention rows", attention_rows_choices().size()), std::to_string(tuned.tuning.attention_rows));
        EXPECT_EQ(attention_rows, (std::set<uint32_t>{1, 2, 4, 8}));
        const std::vector<MatrixTile> choices = matrix_tile_choices(tuned.tuning, first->device().caps);
        EXPECT_EQ(choices.empty(), !tuned.tuning.prompts_use_matrices());
        for (const MatrixTile& tile : choices) all_tiles.insert({tile.rows, tile.outs});
        const std::string tile = MatrixTile{tuned.tuning.matrix_rows, tuned.tuning.matrix_outs, tuned.tuning.matrix_blocks}.text();
        EXPECT_EQ(chosen_of(tuned, "matrix tile", choices.size()), choices.empty() ? "" : tile);
        if (!choices.empty()) {
            EXPECT_EQ(tiles, all_tiles);
        }
    }
    EXPECT_EQ(first->device_tuning().rows, RowCounts::agree);
    EXPECT_TRUE(first->device_tuning().is_kept && !first->device_tuning().is_from_store);
    EXPECT_EQ(first->device_tuning().is_timed, first->device().caps.timestamp_period_ns > 0);
    EXPECT_EQ(first->tuning(), first->device_tuning().tuning);
    auto second = make_engine(desc);
    ASSERT_TRUE(second);
    EXPECT_TRUE(second->device_tuning().is_from_store);
    EXPECT_EQ(second->tuning(), first->tuning());
    auto untuned = make_engine(as_gpu("", TuningMode::off));
    ASSERT_TRUE(untuned);
    expect_same(*second, tell(*second, 3), tell(*untuned, 0));
}

// How drafts are computed follows from the device, until `tune` has measured it: with rejection a seed's text follows from its drafts.
TEST(Tuning, only_who_asks_for_it_changes_drafts) {
    Folder folder("drafts");
    const auto desc_of = [&](TuningMode mode) {
        EngineDesc desc = as_gpu(folder.path.string(), mode);
        desc.draft_synthetic = random_model({.d = 64, .layers = 1, .heads = 2, .ffn = 96, .vocab = kVocab, .tied = true, .dtype = DType::bf16}, 2);
        desc.draft_type = DType::q4_0;
        desc.adjust_caps = [](DeviceCaps& caps) {
            caps.type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
            caps.quick_integer_dots = caps.integer_dots;
        };
        desc.tuning_limits.full_ms = 1; // all knobs are looked at, and none for long
        desc.tuning_limits.once_ms = 8000;
        return desc;
    };
    const auto n_candidates = [&](TuningMode mode) {
        auto tuned = Engine::tune(desc_of(mode), warnings_to_stderr());
        EXPECT_TRUE(tuned.ok()) << tuned.status().message();
        return tuned.ok() ? std::count_if(tuned.value().times.begin(), tuned.value().times.end(), [](const KnobTime& time) { return time.knob == "x of drafts' blocks"; }) : -1;
    };
    auto engine = make_engine(desc_of(TuningMode::off));
    ASSERT_TRUE(engine);
    const DeviceCaps& caps = engine->device().caps;
    const Tuning& tuning = engine->tuning();
    EXPECT_EQ(tuning.int8_drafts, caps.integer_dots && tuning.subgroup);
    EXPECT_EQ(n_candidates(TuningMode::automatic), 0);
    EXPECT_EQ(n_candidates(TuningMode::full), tuning.int8_drafts && caps.timestamp_period_ns > 0 ? 2 : 0);

    const TuningStore store(folder.path.string()); // what was chosen is what comes back
    Tuning whole = tuning;
    whole.int8_drafts = false;
    const TuningKey key = {"device", "driver", "shaders", "bf16 q4_0", "widths", "numerics"};
    EXPECT_TRUE(store.save(key, {whole, true, true}, {}));
    const auto loaded = store.load(key, tuning, caps, {});
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->tuning, whole);
}

// A kernel that does next to nothing wins; its products are seen to be none.
TEST(Tuning, a_matrix_tile_that_computes_something_else_is_not_used) {
    auto untuned = make_engine(as_gpu("", TuningMode::off));
    ASSERT_TRUE(untuned);
    const std::vector<MatrixTile> choices = matrix_tile_choices(untuned->tuning(), untuned->device().caps);
    if (choices.empty()) return; // no matrix units here
    EngineDesc desc = as_gpu("", TuningMode::full);
    desc.tuning_limits.full_ms = 300'000;
    const Tuning base = untuned->tuning();
    desc.adjust_kernels = [base](KernelLibrary& kernels) {
        const Tuning& tuning = kernels.tuning();
        if (MatrixTile{tuning.matrix_rows, tuning.matrix_outs, tuning.matrix_blocks} != MatrixTile{base.matrix_rows, base.matrix_outs, base.matrix_blocks}) kernels.replace("matmul_matrix", embedded_shader("split_halves"));
    };
    Lines lines;
    auto tuned = Engine::tune(desc, lines.log());
    ASSERT_TRUE(tuned.ok()) << tuned.status().message();
    EXPECT_NE(chosen_of(tuned.value(), "matrix tile", choices.size()), std::to_string(base.matrix_rows) + " x " + std::to_string(base.matrix_outs));
    EXPECT_NE(lines.text.find("products on matrix units differ; they are not used"), std::string::npos) << lines.text;
    EXPECT_EQ(tuned.value().tuning.matrix_rows, base.matrix_rows);
    EXPECT_EQ(tuned.value().tuning.matrix_outs, base.matrix_outs);
    EXPECT_EQ(tuned.value().tuning.matrix_blocks, base.matrix_blocks);
}

TEST(Tuning, what_would_take_long_is_left_out) {
    for (const bool has_folder : {false, true}) {
        Folder folder("long");
        EngineDesc desc = as_gpu(has_folder ? folder.path.string() : "", TuningMode::automatic);
        desc.tuning_limits.once_ms = desc.tuning_limits.each_time_ms = 0.001;
        auto tuned = Engine::tune(desc, warnings_to_stderr());
        ASSERT_TRUE(tuned.ok()) << tuned.status().message();
        EXPECT_EQ(tuned.value().rows, RowCounts::not_compared);
        EXPECT_FALSE(tuned.value().is_timed || tuned.value().is_kept || path_exists(folder.kept()));
    }
}

// A comparison that the clock has cut short says so, and has compiled no more than what makes its weights.
TEST(Tuning, no_kernel_is_begun_after_the_time_is_up) {
    auto device = Device::create({.device = "", .hook = {}}, warnings_to_stderr());
    ASSERT_TRUE(device.ok()) << device.status().message();
    auto kernels = KernelLibrary::create(*device.value(), choose_tuning(device.value()->caps), "");
    ASSERT_TRUE(kernels.ok()) << kernels.status().message();
    const DType formats[] = {DType::f32};
    auto late = compare_row_counts(*device.value(), *kernels.value(), formats, now_ns());
    ASSERT_TRUE(late.ok()) << late.status().message();
    EXPECT_FALSE(late.value().is_complete);
    EXPECT_LE(kernels.value()->n_kernels(), 1u);
    auto in_time = compare_row_counts(*device.value(), *kernels.value(), formats);
    ASSERT_TRUE(in_time.ok()) << in_time.status().message();
    EXPECT_TRUE(in_time.value().is_complete && in_time.value().agree);
}

TEST(Tuning, nothing_is_measured_unasked_on_cpus_or_where_it_is_off) {
    Folder folder("off");
    EngineDesc cpu = pair(folder.path.string(), TuningMode::automatic);
    cpu.adjust_caps = [](DeviceCaps& caps) { caps.type = VK_PHYSICAL_DEVICE_TYPE_CPU; };
    for (const EngineDesc& desc : {cpu, as_gpu(folder.path.string(), TuningMode::off), as_gpu("", TuningMode::off)}) {
        auto tuned = Engine::tune(desc, warnings_to_stderr());
        ASSERT_TRUE(tuned.ok()) << tuned.status().message();
        EXPECT_EQ(tuned.value().rows, RowCounts::not_compared);
        EXPECT_FALSE(tuned.value().is_timed || tuned.value().is_kept || path_exists(folder.kept()));
    }
}

// Where nothing can be kept, rows are compared and nothing is timed.
TEST(Tuning, without_a_folder_rows_are_compared_where_that_is_quick) {
    EngineDesc desc = as_gpu("", TuningMode::automatic);
    desc.tuning_limits.each_time_ms = 60'000;
    auto tuned = Engine::tune(desc, warnings_to_stderr());
    ASSERT_TRUE(tuned.ok()) << tuned.status().message();
    EXPECT_EQ(tuned.value().rows, RowCounts::agree);
    EXPECT_FALSE(tuned.value().is_timed || tuned.value().is_kept);
}

TEST(Tuning, hostile_files_are_ignored) {
    const std::string sound = kept_text();
    ASSERT_FALSE(sound.empty());
    const Tuning base = base_tuning();
    const auto expect_ignored = [&](const std::string& text, const std::string& what) {
        std::string warnings;
        const DeviceTuning used = used_of(text, &warnings);
        EXPECT_FALSE(used.is_from_store) << what;
        EXPECT_TRUE(used.tuning == base) << what;
        EXPECT_NE(warnings, "") << what;
    };
    for (const std::string& text : {std::string(), std::string("[]"), std::string("{}"), std::string(100'000, '['), std::string(100'000, ' ') + sound,
                                    sound.substr(0, sound.size() / 2), sound + "x", std::string("\xff\xfe\0", 3)})
        expect_ignored(text, text.substr(0, 20));
    json many = json::parse(sound);
    while (many["entries"].size() < 33) many["entries"].push_back(many["entries"][0]);
    expect_ignored(many.dump(), "33 entries");
    json format = json::parse(sound);
    format["format"] = 2;
    expect_ignored(format.dump(), "format 2");

    std::vector<uint32_t> long_list(1000, 1);
    const std::pair<const char*, std::vector<json>> wrong[] = {
        {"outs", {0, 1, 3, 32, -4, 4.5, 1e300, "4", nullptr, json::array({4}), 4294967300u}},
        {"many_outs", {0, 1, 3, 16, 32, -4, "4", nullptr}},
        {"teams", {0, 3, 16, 1u << 20, -1, "1", true}},
        {"ahead", {0, 3, 8, 1u << 20, -1, 1.5, "2", nullptr}},
        {"many_ahead", {0, 3, 8, -1, "2", nullptr}},
        {"matrices", {1, "false", nullptr, !base.prompts_use_matrices()}}, // as this device has them, but for Intel's
        {"vocab_threads", {0, 7, 512, -8, 1.5, nullptr}},
        {"attention_rows", {0, 3, 16, -1, 1.5, "1", nullptr}},
        {"matrix_rows", {0, 1, 48, 128, -32, 1.5, "32", nullptr}},
        {"matrix_outs", {0, 1, 48, 128, -64, 1.5, "64", nullptr}},
        {"rows", {json::array(), 1, {2, 4}, {1, 1}, {4, 1}, {1, 9}, {0}, {32}, {1, -2}, {1, "2"}, {1, 2.5}, long_list, nullptr}},
        {"block_rows", {json::array(), {1, 3}, {2, 4}, {8, 1}, {64}, long_list}},
        {"wide", {1, 0, "true", nullptr}},
        {"texels", {1, 0, "true", nullptr}},
        {"norm_stage_rows", {4, 5, -1, 1.5, true, "1", nullptr}},
        {"staged_bytes", {1, 4096, 1u << 20, -1, "0", true, nullptr}},
        {"matrix_blocks", {0, 3, 4, -1, "1", nullptr}},
        {"int8_drafts", {0, 1, "true", nullptr}},
        {"rows_agree", {false, 1, nullptr}}, // false goes with one row count only
        {"timed", {1, "yes", nullptr}},
    };
    for (const auto& [name, values] : wrong) {
        json lacks = json::parse(sound);
        lacks["entries"][0].erase(name);
        expect_ignored(lacks.dump(), std::string("without ") + name);
        for (const json& value : values) {
            json entry = json::parse(sound);
            entry["entries"][0]["rows"] = base.matvec_rows; // several
            entry["entries"][0][name] = value;
            expect_ignored(entry.dump(), std::string(name) + " " + value.dump().substr(0, 40));
        }
    }
    if (!base.wide) {
        for (const char* name : {"wide", "texels"}) {
            json entry = json::parse(sound);
            entry["entries"][0][name] = true;
            expect_ignored(entry.dump(), std::string(name) + " on a device that cannot run them");
        }
    }
}

TEST(Tuning, entries_of_other_devices_stay) {
    Folder folder("others");
    const TuningStore store(folder.path.string());
    const Tuning base = base_tuning();
    DeviceCaps caps;
    caps.max_workgroup_invocations = caps.max_workgroup_size_x = 1024;
    for (int i = 0; i < 40; ++i) EXPECT_TRUE(store.save({"device " + std::to_string(i), "\xff driver", "s", "f32", "w", "n"}, {base, true, false}, {}));
    EXPECT_FALSE(store.load({"device 7", "\xff driver", "s", "f32", "w", "n"}, base, caps, {}));
    EXPECT_TRUE(store.load({"device 8", "\xff driver", "s", "f32", "w", "n"}, base, caps, {}));
    EXPECT_TRUE(store.load({"device 39", "\xff driver", "s", "f32", "w", "n"}, base, caps, {}));
    EXPECT_FALSE(TuningStore((folder.path / "no" / "such").string()).save({"a", "b", "c", "d", "e", "f"}, {base, true, false}, {}));
}

// Bit-changing sizes follow from caps alone.
TEST(Tuning, only_bit_neutral_sizes_may_be_chosen) {
    DeviceCaps caps;
    caps.type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    caps.subgroup_size = caps.subgroup_size_min = caps.subgroup_size_max = 32;
    caps.max_workgroup_invocations = caps.max_workgroup_size_x = 128;
    const Tuning base = choose_tuning(caps);
    EXPECT_TRUE(may_choose(base, base, caps));
    const auto may = [&](const std::function<void(Tuning&)>& change) {
        Tuning tuning = base;
        change(tuning);
        return may_choose(tuning, base, caps);
    };
    EXPECT_TRUE(may([](Tuning& t) { t.matvec_outs = 16; }));
    EXPECT_TRUE(may([](Tuning& t) { t.matvec_many_outs = 8; }));
    EXPECT_FALSE(may([](Tuning& t) { t.matvec_many_outs = 16; })) << "no compiler holds them";
    EXPECT_TRUE(may([](Tuning& t) { t.matvec_rows = {1, 8}; }));
    EXPECT_TRUE(may([](Tuning& t) { t.norm_stage_rows = 2; }));
    EXPECT_TRUE(may([](Tuning& t) { t.norm_stage_rows = 3; }));
    EXPECT_FALSE(may([](Tuning& t) { t.norm_stage_rows = 4; }));
    EXPECT_TRUE(may([&](Tuning& t) { t.matvec_staged_bytes = caps.max_shared_memory_bytes; }));
    EXPECT_FALSE(may([](Tuning& t) { t.matvec_staged_bytes = 4096; }));
    EXPECT_TRUE(may([](Tuning& t) { t.matvec_ahead = 1; }));
    EXPECT_FALSE(may([](Tuning& t) { t.matvec_ahead = 8; }));
    EXPECT_TRUE(may([](Tuning& t) { t.matvec_many_ahead = 4; }));
    EXPECT_FALSE(may([](Tuning& t) { t.matvec_many_ahead = 3; }));
    EXPECT_FALSE(may([](Tuning& t) { t.matvec_teams = 8; })) << "256 invocations";
    EXPECT_FALSE(may([](Tuning& t) { t.vocab_threads = 256; }));
    EXPECT_FALSE(may([](Tuning& t) { t.lanes = 16; }));
    EXPECT_FALSE(may([](Tuning& t) { t.attention_split = 64; }));
    EXPECT_FALSE(may([](Tuning& t) { t.prompt_by_rows = true; }));
    EXPECT_FALSE(may([](Tuning& t) { t.subgroup = !t.subgroup; }));
    EXPECT_FALSE(may([](Tuning& t) { t.pinned_subgroup_size = 64; }));
    EXPECT_FALSE(may([](Tuning& t) { t.attention_combines = !t.attention_combines; }));
    EXPECT_FALSE(may([](Tuning& t) { t.matmul_parts = 1; }));
    EXPECT_TRUE(may([](Tuning& t) { t.attention_rows = 8; }));
    EXPECT_FALSE(may([](Tuning& t) { t.attention_rows = 3; }));
    EXPECT_FALSE(may([](Tuning& t) { t.matrix_outs = 32; })) << "there are no matrix units";
}

// Of a device with matrix units, whatever this one has.
TEST(Tuning, every_choice_of_tiles_is_kept_where_it_fits) {
    Folder folder("tiles");
    const TuningStore store(folder.path.string());
    DeviceCaps caps;
    caps.type = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
    caps.subgroup_size = caps.subgroup_size_min = caps.subgroup_size_max = 32;
    caps.subgroup_size_control = caps.subgroup_shuffle = true;
    caps.max_workgroup_invocations = caps.max_workgroup_size_x = 1024;
    caps.max_shared_memory_bytes = 49152;
    caps.matrix = {16, 16, 16};
    const TuningKey key = {"device", "driver", "shaders", "bf16", "3072x8192", "numerics"};
    const auto is_kept = [&](MatrixTile tile, uint32_t attention_rows = 1) {
        const Tuning base = choose_tuning(caps, DType::f32);
        Tuning tuning = base;
        tuning.matrix_rows = tile.rows;
        tuning.matrix_outs = tile.outs;
        tuning.attention_rows = attention_rows;
        EXPECT_TRUE(store.save(key, {tuning, true, true}, {}));
        const auto stored = store.load(key, base, caps, {});
        return stored && stored->tuning == tuning;
    };
    for (MatrixTile tile : {MatrixTile{32, 32}, {32, 64}, {64, 32}, {64, 64}}) EXPECT_TRUE(is_kept(tile)) << tile.rows << " x " << tile.outs;
    for (MatrixTile tile : {MatrixTile{16, 16}, {64, 16}, {128, 64}}) EXPECT_FALSE(is_kept(tile)) << tile.rows << " x " << tile.outs;
    for (uint32_t rows : {1u, 2u, 4u, 8u}) EXPECT_TRUE(is_kept({32, 64}, rows)) << rows;
    for (uint32_t rows : {0u, 3u, 16u}) EXPECT_FALSE(is_kept({32, 64}, rows)) << rows;
    caps.max_shared_memory_bytes = 32768;
    EXPECT_TRUE(is_kept({64, 32}));
    EXPECT_FALSE(is_kept({64, 64}));
}

// Intel's drivers may claim units that the machine lacks: prompts do without until timing has chosen them, which is then kept.
TEST(Tuning, matrix_units_of_intel_are_a_choice_that_is_kept) {
    Folder folder("intel");
    const TuningStore store(folder.path.string());
    DeviceCaps caps;
    caps.type = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;
    caps.vendor_id = 0x8086;
    caps.subgroup_size = caps.subgroup_size_max = 32;
    caps.subgroup_size_min = 8;
    caps.subgroup_size_control = caps.subgroup_shuffle = caps.full_subgroups = caps.shader_float16 = true;
    caps.max_workgroup_invocations = caps.max_workgroup_size_x = 1024;
    caps.max_shared_memory_bytes = 65536;
    caps.matrix = {8, 8, 16};
    const TuningKey key = {"device", "driver", "shaders", "bf16", "3072x8192", "numerics"};
    for (DType cache : {DType::f16, DType::f32}) {
        const Tuning base = choose_tuning(caps, cache);
        EXPECT_FALSE(base.prompts_use_matrices());
        Tuning chosen = with_matrices(base, caps);
        EXPECT_TRUE(chosen.prompts_use_matrices());
        EXPECT_EQ(chosen.matmul_parts, cache == DType::f32 ? 2u : 1u);
        EXPECT_NE(chosen.numerics_id(), base.numerics_id());
        EXPECT_EQ(without_matrices(chosen, caps), base);
        for (MatrixTile tile : matrix_tile_choices(chosen, caps)) {
            EXPECT_LE(tile.rows * tile.outs * 4, 2048u) << "half of a thread's registers";
            chosen.matrix_rows = tile.rows;
            chosen.matrix_outs = tile.outs;
            EXPECT_TRUE(store.save(key, {chosen, true, true}, {}));
            const auto stored = store.load(key, base, caps, {});
            ASSERT_TRUE(stored);
            EXPECT_EQ(stored->tuning, chosen);
        }
        DeviceCaps other = caps; // by whom they are no choice
        other.vendor_id = 0x10de;
        EXPECT_FALSE(may_choose(without_matrices(choose_tuning(other, cache), other), choose_tuning(other, cache), other));
    }
}

// On a device without matrix units the tiled kernel stands in for them: the check knows no difference.
TEST(Tuning, a_prompt_kernel_that_computes_something_else_is_found) {
    EngineDesc desc = pair();
    desc.adjust_tuning = [](Tuning& tuning) {
        tuning.prompt_by_rows = false;
        tuning.matmul_parts = 0;
        tuning.matrix = {};
    };
    auto engine = make_engine(desc);
    ASSERT_TRUE(engine);
    Tuning tuning = engine->tuning();
    auto library = KernelLibrary::create(engine->device(), tuning, "");
    ASSERT_TRUE(library.ok());
    for (DType format : {DType::bf16, DType::q4_0}) {
        auto right = prompt_kernel_error(engine->device(), *library.value(), format);
        ASSERT_TRUE(right.ok()) << right.status().message();
        EXPECT_LT(right.value(), 1e-9);
    }
    auto faulty = KernelLibrary::create(engine->device(), tuning, "");
    ASSERT_TRUE(faulty.ok());
    faulty.value()->replace("matmul", embedded_shader("matmul.quant")); // takes the weights for blocks
    auto wrong = prompt_kernel_error(engine->device(), *faulty.value(), DType::bf16);
    ASSERT_TRUE(wrong.ok()) << wrong.status().message();
    EXPECT_GT(wrong.value(), 0.5);
}

} // namespace
} // namespace auspex::tuning_test
