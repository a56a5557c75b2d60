// The file of results: what it already has is not asked again, what comes is on the disk before it counts.
#pragma once

#include "cli/common/system/append_file.h"
#include "openai/batch_line.h"

#include <string>
#include <unordered_set>

namespace auspex::cli {

class Results {
  public:
    // Takes the file for this process and reads what it has. What a crash left of a last line is cut off. Throws
    // Failure: another process has it, or it holds what no batch wrote; then nothing of it is changed.
    explicit Results(const std::string& path);

    // Whether the request on this line of the input has its result. No custom_id: the line cannot be read. is_repeated:
    // the custom_id stands in an earlier line.
    bool has(uint64_t line, const std::optional<std::string>& custom_id, bool is_repeated) const;
    // Throws Failure: it could not be written.
    void add(const openai::ResultLine& result);

  private:
    void read(const std::string& path);

    std::string name_; // for errors
    AppendFile file_;
    std::unordered_set<std::string> custom_ids_{}; // that are answered
    std::unordered_set<uint64_t> lines_{};         // refused without an id of their own
};

} // namespace auspex::cli
