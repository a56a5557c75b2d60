// Both ends of a connection, for tests of the server: a server on a thread of its own, and a client that sends what it
// is told, byte for byte, and reads what comes. POSIX only.
#pragma once

#include "server/http/http_server.h"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <future>
#include <mutex>
#include <thread>

namespace auspex::test {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
inline constexpr std::chrono::milliseconds kPatience = 20s; // machines are busy; what should come has come much earlier

template <typename Condition> bool wait_until(Condition condition, std::chrono::milliseconds patience = kPatience) {
    const auto end = Clock::now() + patience;
    while (!condition()) {
        if (Clock::now() > end) return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

// Exchanges that nobody has answered yet, and what became of them.
class Held {
  public:
    void hold(std::shared_ptr<http::Exchange> exchange) {
        exchange->on_gone([this] { ++n_gone; });
        const std::lock_guard lock(mutex_);
        exchanges_.push_back(std::move(exchange));
    }
    std::shared_ptr<http::Exchange> at(size_t index) { // waits for it
        wait_until([&] { return size() > index; });
        const std::lock_guard lock(mutex_);
        return index < exchanges_.size() ? exchanges_[index] : nullptr;
    }
    size_t size() {
        const std::lock_guard lock(mutex_);
        return exchanges_.size();
    }
    std::atomic<int> n_gone = 0;

  private:
    std::mutex mutex_;
    std::vector<std::shared_ptr<http::Exchange>> exchanges_;
};

class TestServer {
  public: // Without a handler: says what it was asked; holds what is for /later.
    explicit TestServer(const http::Limits& limits = {}, http::Handler handler = {}, const std::string& unix_path = "")
        : server({.port = 0, .unix_path = unix_path, .limits = limits}, with_defaults(std::move(handler))),
          thread_([this] { server.run(); }) {}
    ~TestServer() { stop(); }

    void stop() {
        if (!thread_.joinable()) return;
        server.stop();
        thread_.join();
    }
    // On the I/O thread; when it returns, the task has run.
    void run_there(const std::function<void()>& task) {
        std::promise<void> done;
        server.post([&] {
            task();
            done.set_value();
        });
        done.get_future().wait();
    }
    void respond(const std::shared_ptr<http::Exchange>& exchange, const std::string& body) {
        run_there([&] { exchange->respond({.body = body}); });
    }

    Held held;
    std::atomic<int> n_handled = 0;
    http::Server server;

  private:
    http::Handler with_defaults(http::Handler handler) {
        if (!handler.handle)
            handler.handle = [this](std::shared_ptr<http::Exchange> exchange) {
                ++n_handled;
                const http::Request& request = exchange->request();
                if (request.path == "/later") return held.hold(std::move(exchange));
                exchange->respond(
                    {.content_type = "text/plain", .body = request.method + " " + request.path + " " + request.body});
            };
        return handler;
    }
    std::thread thread_;
};

struct Reply {
    int status = 0; // 0: nothing came
    std::string head, body;
    std::vector<std::string> chunks; // where it had some
    bool is_whole = false;

    bool has(const std::string& line) const { return head.find("\r\n" + line + "\r\n") != std::string::npos; }
};

class Client {
  public:
    enum class End { open, closed, reset };

    explicit Client(uint16_t port, int receive_buffer = 0) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        if (receive_buffer > 0) ::setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        connect(reinterpret_cast<sockaddr*>(&address), sizeof address);
    }
    explicit Client(const std::string& path) : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
        connect(reinterpret_cast<sockaddr*>(&address), sizeof address);
    }
    explicit Client(const TestServer& server, int receive_buffer = 0) : Client(server.server.port(), receive_buffer) {}
    ~Client() { close(); }
    Client(Client&& other) noexcept : fd_(std::exchange(other.fd_, -1)), is_connected_(other.is_connected_) {}
    Client& operator=(Client&&) = delete;

    bool is_connected() const { return is_connected_; }
    // How much the kernel took; less than all: it was full for `patience`, or the server has closed.
    size_t send(std::string_view bytes, std::chrono::milliseconds patience = kPatience) {
        size_t sent = 0;
        while (sent < bytes.size()) {
            const ssize_t n = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n < 0 && errno != EAGAIN) break;
            if (n >= 0)
                sent += static_cast<size_t>(n);
            else if (!wait_for(POLLOUT, patience))
                break;
        }
        return sent;
    }
    void half_close() { ::shutdown(fd_, SHUT_WR); }
    void close() {
        if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    }
    void reset() {
        const linger hard{1, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
        close();
    }

    // One answer; what follows it stays for the next call.
    Reply read_reply(bool has_body = true) {
        Reply reply;
        if (!read_past("\r\n\r\n", reply.head)) return reply;
        reply.status = std::atoi(reply.head.c_str() + std::strlen("HTTP/1.1 "));
        const size_t length = reply.head.find("Content-Length: ");
        if (!has_body || reply.status == 100) {
            reply.is_whole = true;
        } else if (length != std::string::npos) {
            reply.is_whole = read_bytes(std::stoul(reply.head.substr(length + 16)), reply.body);
        } else if (reply.has("Transfer-Encoding: chunked")) {
            read_chunks(reply);
        } else {
            while (read_some())
                continue;
            reply.body.swap(got_);
            reply.is_whole = end_ == End::closed;
        }
        if (got_.empty()) got_ = std::string();
        return reply;
    }
    Reply ask(const std::string& request, bool has_body = true) {
        send(request);
        return read_reply(has_body);
    }
    // That nothing more comes, and how it ends; `open`: it does not.
    End end(std::chrono::milliseconds patience = kPatience) {
        while (read_some(patience))
            continue;
        EXPECT_EQ(got_, "");
        return end_;
    }
    bool read_some(std::chrono::milliseconds patience = kPatience) {
        if (end_ != End::open || !wait_for(POLLIN, patience)) return false;
        char room[65536];
        const ssize_t n = ::recv(fd_, room, sizeof room, 0);
        if (n <= 0)
            end_ = n == 0 ? End::closed : End::reset;
        else
            got_.append(room, static_cast<size_t>(n));
        return n > 0;
    }
    std::string got_;

  private:
    void connect(const sockaddr* address, socklen_t size) { is_connected_ = ::connect(fd_, address, size) == 0; }
    bool wait_for(short events, std::chrono::milliseconds patience) {
        pollfd one{fd_, events, 0};
        return ::poll(&one, 1, static_cast<int>(patience.count())) > 0;
    }
    bool read_past(const std::string& text, std::string& into) {
        size_t at = 0;
        while ((at = got_.find(text)) == std::string::npos)
            if (!read_some()) return false;
        into = got_.substr(0, at + text.size());
        got_.erase(0, at + text.size());
        return true;
    }
    bool read_bytes(size_t n, std::string& into) {
        while (got_.size() < n)
            if (!read_some()) return false;
        into = got_.substr(0, n);
        got_.erase(0, n);
        return true;
    }
    void read_chunks(Reply& reply) {
        std::string line, chunk;
        while (read_past("\r\n", line)) {
            const size_t size = std::stoul(line, nullptr, 16);
            if (!read_bytes(size + 2, chunk) || (reply.is_whole = size == 0)) return;
            reply.chunks.push_back(chunk.substr(0, size));
            reply.body += reply.chunks.back();
        }
    }

    int fd_;
    bool is_connected_ = false;
    End end_ = End::open;
};

inline std::string get(const std::string& target, const std::string& headers = "") {
    return "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n";
}

inline std::string post(const std::string& target, const std::string& body, const std::string& headers = "") {
    return "POST " + target + " HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n" + headers + "\r\n" + body;
}

} // namespace auspex::test
