// Results that are kept, and those that are added.
#include "cli/batch/results.h"

#include "cli/batch/input_lines.h"
#include "cli/common/input/values.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace auspex::cli {

namespace {

// A line whose end is missing: the beginning of one of ours, or what some file systems leave after a loss of power.
bool is_torn(const std::string& text) {
    const std::string_view begin = openai::kResultBegin;
    const size_t n_bytes = std::min(text.size(), begin.size());
    return text.compare(0, n_bytes, begin, 0, n_bytes) == 0 || text.front() == '\0';
}

} // namespace

Results::Results(const std::string& path) : name_("-o " + path) {
    switch (file_.open(path)) {
    case AppendFile::Opened::yes:
        break;
    case AppendFile::Opened::by_another:
        throw Failure(kExitFile, name_ + ": another process writes to it, expected a file of its own for each; "
                                         "wait for that, or name another file");
    case AppendFile::Opened::no:
        throw Failure(kExitFile, name_ + ": " + std::strerror(errno));
    }
    read(path);
}

void Results::read(const std::string& path) {
    InputLines lines("-o", path, 0);
    uint64_t whole = 0; // bytes of whole lines
    while (lines.next()) {
        if (!lines.has_end() && is_torn(lines.text())) {
            if (!file_.cut(whole)) throw Failure(kExitInternal, name_ + ": " + std::strerror(errno));
            return;
        }
        const auto key = openai::parse_result_line(lines.text());
        if (!key || !lines.has_end())
            throw Failure(kExitFile,
                          name_ + format(": line %llu is no result of auspex batch, expected a new file or results",
                                         static_cast<unsigned long long>(lines.number())));
        whole = lines.bytes_read();
        if (key->custom_id && !key->is_duplicate)
            custom_ids_.insert(*key->custom_id);
        else
            lines_.insert(key->line);
    }
}

bool Results::has(uint64_t line, const std::optional<std::string>& custom_id, bool is_repeated) const {
    return custom_id && !is_repeated ? custom_ids_.contains(*custom_id) : lines_.contains(line);
}

void Results::add(const openai::ResultLine& result) {
    if (!file_.append(openai::to_text(result) + "\n"))
        throw Failure(kExitInternal, name_ + ": " + std::strerror(errno));
}

} // namespace auspex::cli
