// config.json and, after "\x1e", generation_config.json.
#include "fuzz/fuzz_targets.h"
#include "fuzz/memory_files.h"
#include "model/llama_config.h"

#include <cmath>

namespace auspex::test {

void fuzz_config_json(FuzzInput input) {
    clear_files();
    const auto files = split_files(input);
    put_file(memory_folder() + "/config.json", files[0]);
    if (files.size() > 1) put_file(memory_folder() + "/generation_config.json", files[1]);
    const auto config = read_llama_config(memory_folder());
    if (!config.ok()) return check_refusal(config.status());
    fuzz_check(check_llama_config(config.value(), "config").ok(), "a config that was read is one that passes");
    fuzz_check(config.value().n_parameters() > 0, "a model has parameters");
    const auto frequencies = rope_frequencies(config.value());
    fuzz_check(frequencies.size() == config.value().head_dim / 2, "one frequency for each pair");
    for (double frequency : frequencies)
        fuzz_check(std::isfinite(frequency) && frequency > 0, "frequencies are finite and positive");
}

} // namespace auspex::test
