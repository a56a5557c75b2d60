// Declares the flags that several commands have, and checks them.
#include "cli/common/input/shared_flags.h"

#include "cli/common/system/terminal.h"

namespace auspex::cli {

namespace {

void add_weight_type(CLI::App& app, const std::string& names, const std::string& help, auspex_weight_type& target) {
    add_choice<auspex_weight_type>(app, names, "TYPE", help, target, weight_types());
}

} // namespace

void add_target(CLI::App& app, Shared& shared, const std::string& otherwise) {
    add_text(app, "-m,--model", "PATH", "Target model: a GGUF file or a Hugging Face folder; " + otherwise,
             shared.target);
}

void add_draft(CLI::App& app, Shared& shared, const std::string& help) {
    add_text(app, "--model-draft", "PATH", help, shared.draft);
}

void add_quant(CLI::App& app, auspex_weight_type& target) {
    add_weight_type(app, "--quant",
                    "Type of the target's matrices on the device, converted while loading: as-is, f16, bf16, q8_0, "
                    "q6_k, q4_k or q4_0 (as-is)",
                    target);
}

void add_models(CLI::App& app, Shared& shared, ModelOptions& models, const std::string& otherwise) {
    add_target(app, shared, otherwise);
    add_draft(app, shared,
              "Draft model, as -m; without it -m drafts from its own text, on a GPU also by a copy of itself "
              "(--self-quant)");
    add_quant(app, models.target_weights);
    add_weight_type(app, "--draft-quant", "The same for the draft (as-is)", models.draft_weights);
    add_choice<std::optional<auspex_self_draft>>(
        app, "--self-quant", "TYPE",
        "Draft by a copy of the target's own matrices in fewer bits, made while loading: q4_0, q4_k or q8_0, or as-is "
        "for tests (q4_0 with --drafter self)",
        models.self_quant,
        {{"q4_0", AUSPEX_SELF_DRAFT_Q4_0}, {"q4_k", AUSPEX_SELF_DRAFT_Q4_K}, {"q8_0", AUSPEX_SELF_DRAFT_Q8_0}, {"as-is", AUSPEX_SELF_DRAFT_AS_IS}});
}

void add_cache_type(CLI::App& app, auspex_cache_type& target) {
    add_choice<auspex_cache_type>(app, "--cache-type", "", "Precision of the K/V cache (f16)", target,
                                  {{"f16", AUSPEX_CACHE_F16}, {"f32", AUSPEX_CACHE_F32}, {"q8_0", AUSPEX_CACHE_Q8_0}});
}

void add_context(CLI::App& app, ModelOptions& models) {
    add_number(app, "-c,--ctx-size", "Tokens of context; 0: the target's, at most 4096 (0)", models.context, 0,
               kMaxTokens);
}

void add_device_name(CLI::App& app, ModelOptions& models) {
    add_text(app, "--device", "N|NAME", "Device by number or by part of its name, as auspex info lists them",
             models.device);
}

void add_device(CLI::App& app, ModelOptions& models) {
    add_device_name(app, models);
    add_context(app, models);
    add_cache_type(app, models.cache_type);
}

void add_prompt(CLI::App& app, PromptOptions& prompt, const std::string& help) {
    add_text(app, "-p,--prompt", "TEXT", help, prompt.text);
    add_text(app, "-f,--file", "FILE", "Text from a file (-: stdin); one line end at its end is dropped", prompt.file);
    add_value(app, "--tokens", "1,2,3", "Token ids instead of text, verbatim",
              [&prompt](const std::string& flag, const std::string& text) {
                  prompt.tokens = parse_whole_list(flag, text, 0, 0xffffffffu);
              });
}

void add_length_and_seed(CLI::App& app, SamplingOptions& sampling) {
    add_value(app, "-n,--n-predict", "N",
              format("Tokens to generate; -1: until the context is full (%u)", sampling.n_predict),
              [&sampling](const std::string& flag, const std::string& text) {
                  sampling.n_predict = parse_n_predict(flag, text);
              });
    add_value(
        app, "-s,--seed", "SEED", "Seed; -1: a random one (-1)",
        [&sampling](const std::string& flag, const std::string& text) { sampling.seed = parse_seed(flag, text); });
}

void add_settings(CLI::App& app, SamplingOptions& sampling, SettingGroup group, std::vector<std::string> except) {
    for (const SamplingSetting& setting : sampling_settings()) {
        if (setting.group != group || std::find(except.begin(), except.end(), setting.name) != except.end()) continue;
        add_value(app, std::string("--") + setting.name, setting.value_name, setting.help,
                  [&sampling, set = setting.set](const std::string& flag, const std::string& text) {
                      set(sampling, flag, text);
                  });
    }
}

void add_biases(CLI::App& app, SamplingOptions& sampling) {
    add_repeatable(
        app, "--logit-bias", "ID+X", "Adds X to a token's logit; ID-X subtracts, ID-inf bans; repeatable",
        [&sampling](const std::string& flag, const std::string& text) { add_logit_bias(sampling, flag, text); });
    add_repeatable(app, "--ban", "1,2,3", "Tokens that are never said, as --logit-bias ID-inf; repeatable",
                   [&sampling](const std::string& flag, const std::string& text) { add_ban(sampling, flag, text); });
}

void add_stop_texts(CLI::App& app, SamplingOptions& sampling) {
    add_repeatable(
        app, "--stop", "TEXT", "Text that ends the answer and is no part of it; repeatable",
        [&sampling](const std::string& flag, const std::string& text) { add_stop_text(sampling, flag, text); });
}

void add_chat_layout(CLI::App& app, std::string& template_name) {
    std::vector<std::pair<std::string, std::string>> names;
    for (const char* name : {"llama3", "llama3-plain", "llama2", "zephyr", "chatml"})
        names.emplace_back(name, name);
    add_choice<std::string>(app, "--chat-template", "NAME",
                            "Layout of a conversation: llama3, llama3-plain, llama2, zephyr or chatml (what the "
                            "model's own template is recognised as)",
                            template_name, names);
}

void add_chat_format(CLI::App& app, ChatFormat& format) {
    add_text(app, "--system", "TEXT", "System message of the conversation; \"\": none (the template's own)",
             format.system);
    add_chat_layout(app, format.template_name);
    add_text(app, "--date", "TEXT", "Date that llama3 tells the model, e.g. \"26 Jul 2024\" (today)", format.date);
}

void add_color(CLI::App& app, ColorMode& target) {
    add_choice<ColorMode>(
        app, "--color", "", "Colour tokens by how they came about; auto: on a terminal unless NO_COLOR is set (auto)",
        target, {{"auto", ColorMode::automatic}, {"always", ColorMode::always}, {"never", ColorMode::never}});
}

std::string bundled_model(const char* name) {
    const std::string folder = executable_folder() + "/../share/auspex/pair/" + name;
    if (!is_folder(folder))
        throw Failure(kExitFile, "the bundled model " + folder + " is missing: name a model with -m");
    return folder;
}

void check_paths(const Shared& shared) {
    for (const auto& [flag, path] : {std::pair{"-m", &shared.target}, std::pair{"-md", &shared.draft}})
        if (*path && (*path)->empty())
            throw Failure(kExitUsage, std::string(flag) + " \"\": expected a GGUF file or a model folder");
}

void check_prompt(const PromptOptions& prompt) {
    const int n_prompts = int{prompt.text.has_value()} + int{prompt.file.has_value()} + int{!prompt.tokens.empty()};
    if (n_prompts > 1) throw Failure(kExitUsage, "-p, -f and --tokens exclude each other: give one of them");
    if (prompt.text && prompt.text->empty()) throw Failure(kExitUsage, "-p: the prompt is empty");
}

void check_device(const ModelOptions& models) {
    if (models.device && models.device->empty())
        throw Failure(kExitUsage, "--device \"\": expected the number or a part of the name of a device");
}

void choose_models(const Shared& shared, const DraftNeed& need, bool has_target_shape, bool has_draft_shape,
                   ModelOptions& models) {
    if (has_target_shape && shared.target) throw Failure(kExitUsage, "--shape and -m exclude each other");
    if (has_draft_shape && shared.draft) throw Failure(kExitUsage, "--draft-shape and -md exclude each other");
    check_paths(shared);
    check_device(models);

    models.is_bundled_pair = !shared.target && !shared.draft && !has_target_shape;
    if (!has_target_shape) models.target = shared.target ? *shared.target : bundled_model("target");
    if (!need.may_use && !need.by_self) return;
    if (need.by_self || models.self_quant) {
        if (has_draft_shape) throw Failure(kExitUsage, "--draft-shape: expected no drafts by the target's own weights beside it");
        if (shared.draft && !need.by_self) throw Failure(kExitUsage, "--self-quant and -md exclude each other: one of them drafts");
        if (need.needed_by.starts_with("--drafter ") && !need.by_self && !need.by_either) // it would draft nothing
            throw Failure(kExitUsage, "--self-quant and " + need.needed_by + " exclude each other: an engine has one of them");
        if (shared.draft) std::fprintf(stderr, "auspex: --drafter self: the draft model %s is not loaded\n", shared.draft->c_str());
        models.self_draft = models.self_quant.value_or(AUSPEX_SELF_DRAFT_Q4_0);
        return;
    }
    if (has_draft_shape) return;
    models.may_self_draft = shared.target && !shared.draft && (need.needed_by.empty() || need.by_either);
    if (models.may_self_draft) models.draft_needed_by = need.needed_by;
    if (shared.draft)
        models.draft = *shared.draft;
    else if (!shared.target && !has_target_shape)
        models.draft = bundled_model("draft");
    else if (!need.needed_by.empty() && !models.may_self_draft)
        throw Failure(kExitUsage, need.needed_by + ": expected a draft model too (-md PATH)" + (need.by_either ? ", or --self-quant" : ""));
}

bool needs_model(auspex_drafter drafter) {
    return drafter_info(drafter).needs_model != 0 && drafter_info(drafter).needs_self == 0;
}

bool needs_self(auspex_drafter drafter) {
    return drafter_info(drafter).needs_self != 0 && drafter_info(drafter).needs_model == 0;
}

bool needs_either(auspex_drafter drafter) {
    return drafter_info(drafter).needs_model != 0 && drafter_info(drafter).needs_self != 0;
}

DraftNeed settle_drafting(SamplingOptions& sampling, bool no_draft) {
    const auto contradict = [](const std::string& one, const std::string& other) {
        return Failure(kExitUsage, one + " and " + other + " contradict each other: give one of them");
    };
    const std::string drafter = std::string("--drafter ") + drafter_name(sampling.drafter);
    const std::string draft_len = "--draft-len " + draft_len_name(sampling.draft_len);
    const bool has_drafter = sampling.drafter != AUSPEX_DRAFTER_AUTO && sampling.drafter != AUSPEX_DRAFTER_NONE;
    const bool has_draft_len = sampling.draft_len != AUSPEX_DRAFT_LEN_AUTO && sampling.draft_len != 0;
    if (no_draft && has_draft_len) throw contradict("--no-draft", draft_len);
    if (no_draft && has_drafter) throw contradict("--no-draft", drafter);
    if (sampling.drafter == AUSPEX_DRAFTER_NONE && has_draft_len) throw contradict(drafter, draft_len);
    if (sampling.draft_len == 0 && has_drafter) throw contradict(draft_len, drafter);
    check_together(sampling);
    if (no_draft) sampling.draft_len = 0;
    const bool needs_one = needs_model(sampling.drafter) || needs_either(sampling.drafter);
    return {.may_use = !sampling.is_plain() && (needs_one || sampling.drafter == AUSPEX_DRAFTER_AUTO),
            .needed_by = needs_one ? drafter : "",
            .by_self = needs_self(sampling.drafter),
            .by_either = needs_either(sampling.drafter)};
}

void add_speculation(CLI::App& app, SamplingOptions& sampling, Shared& shared) {
    begin_group(app, "Speculation");
    add_settings(app, sampling, SettingGroup::speculation);
    app.add_flag("--no-draft", shared.no_draft, "Plain decoding, as --drafter none and as --draft-len 0");
}

void add_sampling(CLI::App& app, SamplingOptions& sampling) {
    begin_group(app, "Sampling");
    add_length_and_seed(app, sampling);
    add_settings(app, sampling, SettingGroup::sampling);
    add_biases(app, sampling);
    add_stop_texts(app, sampling);
}

void end_groups(CLI::App& app) {
    app.set_help_flag("-h,--help", "Print this help");
}

} // namespace auspex::cli
