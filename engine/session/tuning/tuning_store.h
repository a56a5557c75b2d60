// Keeps what was measured of devices in one small JSON file in a folder that the host names. The file is a hint: whatever
// is wrong with it, or may not be chosen, is logged and left behind.
#pragma once

#include "formats/entry_file.h"
#include "kernels/tuning.h"

#include <optional>
#include <string>

namespace auspex {

// What was measured holds for exactly this.
struct TuningKey {
    std::string device, driver;
    std::string shaders;  // embedded_shaders_hash
    std::string formats;  // of the matrices: "bf16 q4_0"
    std::string widths;   // of the models and of their feed-forward parts: "3072x8192 2048x8192"; small matrices want other sizes than large ones
    std::string numerics; // of the tuning that caps give
};

struct StoredTuning {
    Tuning tuning;
    bool rows_agree = true; // false: one padded row count
    bool is_timed = false;  // false: rows were compared, nothing else
};

class TuningStore {
  public:
    // Empty folder: nothing is kept.
    explicit TuningStore(const std::string& folder)
        : file_(folder.empty() ? "" : folder + "/tuning.json", 64 << 10, "what was measured of devices") {}

    // None: nothing usable is stored for the key. base, caps: what may be chosen follows from them.
    std::optional<StoredTuning> load(const TuningKey& key, const Tuning& base, const DeviceCaps& caps, const Logger& log) const;
    // Entries of other keys stay, up to a bound; the oldest go first. False: it could not be written, and the log says why.
    bool save(const TuningKey& key, const StoredTuning& stored, const Logger& log) const;

    const std::string& path() const { return file_.path(); }

  private:
    EntryFile file_;
};

} // namespace auspex
