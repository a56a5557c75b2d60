// A trace of a run for https://ui.perfetto.dev or chrome://tracing: Chrome's trace event format, one track for what the
// host does, one for the GPU's turns and one for their stages.
#pragma once

#include <auspex/auspex_tools.h>

#include <chrono>
#include <cstdio>
#include <string>

namespace auspex::cli {

// The file is whole after every write, also when the program is ended between two of them.
class TraceFile {
  public:
    explicit TraceFile(const std::string& path); // Failure(kExitFile) when it cannot be written
    ~TraceFile();
    TraceFile(const TraceFile&) = delete;
    TraceFile& operator=(const TraceFile&) = delete;

    static void callback(void* user_data, const auspex_trace_event* event); // for auspex_engine_set_trace
    using Clock = std::chrono::steady_clock;                                // as the library's
    void add_host_event(const char* name, Clock::time_point begin, Clock::time_point end);
    void finish(); // writes what is left; Failure(kExitFile) when not everything could be written

  private:
    void add(const std::string& name, int track, double begin_ns, double duration_ns, const std::string& arguments);
    void write();

    std::string path_;
    std::FILE* file_;
    int error_ = 0; // errno of the first write that failed
    double start_ns_;     // becomes 0 in the file
    long end_ = 0;        // where the next event goes, over what closes the list
    std::string unsaved_; // events, each after a comma
};

} // namespace auspex::cli
