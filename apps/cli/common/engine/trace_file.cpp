// Events are gathered and written some thousand at a time, each time followed by what closes the list.
#include "cli/common/engine/trace_file.h"

#include "cli/common/input/values.h"
#include "cli/common/system/terminal.h"

#include <cerrno>
#include <cstring>

namespace auspex::cli {

namespace {

constexpr size_t kWriteBytes = 256u << 10;
constexpr const char* kClose = "\n]}\n";

enum Track { kHost = 1, kTurns = 2, kStages = 3 };

double nanoseconds(TraceFile::Clock::time_point time) {
    return std::chrono::duration<double, std::nano>(time.time_since_epoch()).count();
}

std::string track_name(Track track, const char* name) {
    return format(",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"args\":{\"name\":\"%s\"}}", track,
                  name);
}

} // namespace

TraceFile::TraceFile(const std::string& path)
    : path_(path), file_(open_to_write(path)), start_ns_(nanoseconds(Clock::now())) {
    if (file_ == nullptr) throw Failure(kExitFile, "--trace " + path_ + ": " + std::strerror(errno));
    if (std::fseek(file_, 0, SEEK_SET) != 0) {
        std::fclose(file_);
        throw Failure(kExitFile,
                      "--trace " + path_ + ": expected a file, found something that can only be written in order");
    }
    std::setvbuf(file_, nullptr, _IONBF, 0); // what is written at once is there at once, or not at all
    unsaved_ = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
               "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":\"auspex\"}}";
    unsaved_ += track_name(kHost, "host") + track_name(kTurns, "GPU rounds") + track_name(kStages, "GPU stages");
    write();
}

TraceFile::~TraceFile() {
    write();
    std::fclose(file_);
}

void TraceFile::callback(void* user_data, const auspex_trace_event* event) {
    auto& file = *static_cast<TraceFile*>(user_data);
    std::string arguments = format("\"turn\":%llu", static_cast<unsigned long long>(event->turn));
    if (event->is_stage == 0 && event->drafter[0] != '\0')
        arguments += format(",\"draft_len\":%u,\"batch\":%u,\"accepted\":%u,\"tokens\":%u,\"drafter\":\"%s\"",
                            event->draft_len, event->batch, event->n_accepted, event->n_tokens, event->drafter);
    file.add(event->name, event->is_stage != 0 ? kStages : kTurns, static_cast<double>(event->begin_ns),
             static_cast<double>(event->duration_ns), arguments);
}

void TraceFile::add_host_event(const char* name, Clock::time_point begin, Clock::time_point end) {
    add(name, kHost, nanoseconds(begin), nanoseconds(end) - nanoseconds(begin), "");
}

void TraceFile::add(const std::string& name, int track, double begin_ns, double duration_ns,
                    const std::string& arguments) {
    unsaved_ += format(",\n{\"name\":\"%s\",\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{",
                       name.c_str(), track, (begin_ns - start_ns_) * 1e-3, duration_ns * 1e-3);
    unsaved_ += arguments + "}}";
    if (unsaved_.size() > kWriteBytes) write();
}

void TraceFile::write() {
    std::fseek(file_, end_, SEEK_SET);
    end_ += static_cast<long>(unsaved_.size());
    unsaved_ += kClose;
    errno = 0;
    if (std::fwrite(unsaved_.data(), 1, unsaved_.size(), file_) < unsaved_.size() && error_ == 0) error_ = errno;
    unsaved_.clear();
}

void TraceFile::finish() {
    write();
    if (std::ferror(file_) != 0) throw Failure(kExitFile, "--trace " + path_ + ": " + std::strerror(error_));
}

} // namespace auspex::cli
