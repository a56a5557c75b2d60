// tokenizer.json and, each after "\x1e", tokenizer_config.json and chat_template.jinja. With an empty
// tokenizer.json the settings are read by themselves: a vocabulary would be most of the work.
#include "fuzz/fuzz_targets.h"
#include "fuzz/memory_files.h"
#include "tokens/open_tokenizer.h"

namespace auspex::test {

void fuzz_tokenizer_json(FuzzInput input) {
    clear_files();
    const auto files = split_files(input);
    if (files.size() > 1) put_file(memory_folder() + "/tokenizer_config.json", files[1]);
    if (files.size() > 2) put_file(memory_folder() + "/chat_template.jinja", files[2]);
    if (files[0].empty()) {
        const auto settings = read_tokenizer_settings(memory_folder());
        if (!settings.ok()) check_refusal(settings.status());
        return;
    }
    put_file(memory_folder() + "/tokenizer.json", files[0]);
    const auto tokenizer = open_tokenizer(memory_folder());
    if (!tokenizer.ok()) return check_refusal(tokenizer.status());
    use_tokenizer(*tokenizer.value(), Fidelity::bytes);
}

} // namespace auspex::test
