// One line on stderr that shows how far something is. Nothing is shown where stderr is no terminal, nor before half a
// second has passed; the line is cleared when the bar is destroyed.
#pragma once

#include <chrono>
#include <string>

namespace auspex::cli {

class ProgressBar {
  public:
    explicit ProgressBar(const char* label); // "loading"
    ~ProgressBar();
    ProgressBar(const ProgressBar&) = delete;
    ProgressBar& operator=(const ProgressBar&) = delete;

    void draw(float fraction); // 0…1
    void draw(float fraction, double seconds_left);
    void clear(); // before something else is shown
    // For the library; user_data is the bar.
    static void callback(void* user_data, float fraction) { static_cast<ProgressBar*>(user_data)->draw(fraction); }

  private:
    void show(float fraction, const std::string& ending);

    const char* label_;
    bool is_shown_;
    std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
    std::string line_{}; // that is on the screen
};

// Whether a line of stderr may be redrawn.
bool can_redraw();

} // namespace auspex::cli
