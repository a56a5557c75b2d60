// The text is looked through once without building anything, so that no limit can be passed, and then parsed.
#include "openai/json_text.h"

#include <vector>

namespace auspex::openai {

namespace {

// Counts depth, and remembers the string of one key of the outermost object.
class Scan : public nlohmann::json_sax<Json> {
  public:
    explicit Scan(std::string_view wanted) : wanted_(wanted) {}

    bool null() override { return true; }
    bool boolean(bool) override { return true; }
    bool number_integer(number_integer_t) override { return true; }
    bool number_unsigned(number_unsigned_t) override { return true; }
    bool number_float(number_float_t, const string_t&) override { return true; }
    bool binary(binary_t&) override { return true; }
    bool string(string_t& text) override {
        if (depth_ == 1 && is_wanted_) found_ = text;
        return true;
    }
    bool key(string_t& text) override {
        if (depth_ == 1) is_wanted_ = text == wanted_;
        name_work_ += n_names_.back()++;
        if (name_work_ <= kMaxNameWork) return true;
        fault_ = "found too many names in an object";
        return false;
    }
    bool start_object(size_t) override { return enter(); }
    bool end_object() override { return leave(); }
    bool start_array(size_t) override { return enter(); }
    bool end_array() override { return leave(); }
    bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
        fault_ = shown(error.what()) + " (byte " + std::to_string(position) + ")";
        return false;
    }

    const std::optional<std::string>& found() const { return found_; }
    const std::string& fault() const { return fault_; } // empty: none

  private:
    bool enter() {
        n_names_.push_back(0);
        if (++depth_ <= kMaxJsonDepth) return true;
        fault_ = "found more than " + std::to_string(kMaxJsonDepth) + " objects and arrays inside each other";
        return false;
    }
    bool leave() {
        --depth_;
        n_names_.pop_back();
        return true;
    }

    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error …; last read: …" in a few words.
    static std::string shown(std::string_view what) {
        constexpr size_t most = 120;
        what = what.substr(std::min(what.find("] ") + 2, what.size()));
        if (const size_t at = what.find("syntax error"); at != std::string_view::npos) what = what.substr(at);
        what = what.substr(0, what.find("; last read"));
        return std::string(what.substr(0, most));
    }

    std::string_view wanted_;
    int depth_ = 0;
    std::vector<size_t> n_names_; // of each object that is open
    size_t name_work_ = 0;
    bool is_wanted_ = false;
    std::optional<std::string> found_;
    std::string fault_;
};

} // namespace

Json parse_json(std::string_view text) {
    if (text.size() > kMaxJsonBytes)
        throw RequestError("", "found more than " + std::to_string(kMaxJsonBytes >> 20) + " MiB, expected at most that",
                           "too_long");
    Scan scan("");
    if (!Json::sax_parse(text, &scan)) throw RequestError("", "expected JSON: " + scan.fault(), "invalid_json");
    return Json::parse(text);
}

std::optional<std::string> find_string(std::string_view text, std::string_view key) {
    Scan scan(key);
    Json::sax_parse(text, &scan);
    return scan.found();
}

std::string to_text(const Json& json) {
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

} // namespace auspex::openai
