// Keeps what was learnt of a pair of models on a device (costs, long-run acceptance) in one small JSON file in a folder
// that the host names. The file is a hint: whatever is wrong with it is logged and left behind.
#pragma once

#include "formats/entry_file.h"
#include "session/speculation/acceptance_estimator.h"
#include "session/speculation/cost_model.h"

#include <string>

namespace auspex {

// What was learnt holds for exactly this. Identities: any text that tells models apart (path, size, hash).
struct SpeculationKey {
    std::string device, driver, target, draft, cache_type;
};

class SpeculationStore {
  public:
    // Empty folder: nothing is kept.
    explicit SpeculationStore(const std::string& folder)
        : file_(folder.empty() ? "" : folder + "/speculation.json", 256 << 10, "what was learnt about speculation") {}

    // False: nothing usable is stored for the key; then neither is changed.
    bool load(const SpeculationKey& key, CostModel& costs, LongRun& long_run, const Logger& log) const;
    // Entries of other keys stay, up to a bound; the oldest go first.
    void save(const SpeculationKey& key, const CostModel& costs, const LongRun& long_run, const Logger& log) const;

    const std::string& path() const { return file_.path(); }

  private:
    EntryFile file_;
};

} // namespace auspex
