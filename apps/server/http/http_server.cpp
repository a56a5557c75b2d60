// The server: who is let in, signals, and what has to happen later. Connections look after themselves.
#include "server/http/connection.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>

#include <csignal>
#include <unordered_map>

namespace auspex::http {

namespace {

constexpr size_t kMostRefused = 64; // that are told so at once; beyond them connections are just closed
constexpr std::chrono::milliseconds kPauseOfAccept{100};

} // namespace

class Server::Impl {
  public:
    Impl(const Options& options, Handler handler)
        : common_{.limits = options.limits, .handler = std::move(handler)}, listener_(io_, options), pause_(io_),
          signals_(io_) {
        common_.on_closed = [this](Connection& connection) { forget(connection); };
    }
    ~Impl() { close_all(/*tells=*/false); }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    void run() {
        const auto work = asio::make_work_guard(io_);
        if (!common_.is_ending) accept();
        io_.run();
    }

    void stop_accepting() {
        common_.is_ending = true;
        listener_.close();
        pause_.cancel();
        for (const auto& connection : all())
            if (connection->is_between_requests()) connection->close(Connection::Ending::quiet);
    }

    void stop() {
        stop_accepting();
        close_all(/*tells=*/true);
        io_.stop();
    }

    void on_signal(std::function<void(int)> callback) {
        on_signal_ = std::move(callback);
        if (std::exchange(has_signals_, true)) return;
        signals_.add(SIGINT);
        signals_.add(SIGTERM);
        wait_for_signal();
    }

    asio::io_context io_{1}; // outlives what waits in it
    Common common_;
    Listener listener_;
    asio::steady_timer pause_;
    asio::signal_set signals_;

  private:
    void wait_for_signal() {
        signals_.async_wait([this](const ErrorCode& code, int signal) {
            if (code) return;
            wait_for_signal();
            if (on_signal_) on_signal_(signal);
        });
    }

    void accept() {
        listener_.acceptor().async_accept([this](const ErrorCode& code, Socket socket) {
            if (common_.is_ending) return;
            if (code) return accept_later();
            let_in(std::move(socket));
            accept();
        });
    }

    // There are no file descriptors, or no memory: trying at once would be all that the thread does.
    void accept_later() {
        pause_.expires_after(kPauseOfAccept);
        pause_.async_wait([this](const ErrorCode& code) {
            if (!code && !common_.is_ending) accept();
        });
    }

    void let_in(Socket socket) {
        ++common_.accepted;
        const std::optional<std::string> peer = greet(socket);
        if (!peer) return;
        const bool is_local = *peer == "unix";
        const auto of_peer = per_address_.find(*peer);
        const size_t n_of_peer = of_peer == per_address_.end() ? 0 : of_peer->second;
        const bool is_refused = common_.open >= common_.limits.connections ||
                                (!is_local && n_of_peer >= common_.limits.connections_per_address);
        if (is_refused) ++common_.refused;
        if (is_refused && n_refused_ >= kMostRefused) return;
        const auto connection = std::make_shared<Connection>(std::move(socket), *peer, common_);
        connections_.emplace(connection.get(), connection);
        if (is_refused) {
            ++n_refused_;
            connection->start_refused();
        } else {
            ++common_.open;
            if (!is_local) ++per_address_[*peer];
            connection->start();
        }
    }

    void forget(Connection& connection) {
        connections_.erase(&connection);
        if (connection.is_refused()) {
            --n_refused_;
            return;
        }
        --common_.open;
        const auto of_peer = per_address_.find(connection.peer());
        if (of_peer != per_address_.end() && --of_peer->second == 0) per_address_.erase(of_peer);
    }

    // Closing one takes it out of connections_.
    std::vector<std::shared_ptr<Connection>> all() const {
        std::vector<std::shared_ptr<Connection>> all;
        for (const auto& [_, connection] : connections_)
            all.push_back(connection);
        return all;
    }

    void close_all(bool tells) {
        for (const auto& connection : all())
            connection->close(Connection::Ending::reset, tells);
    }

    std::function<void(int)> on_signal_{};
    bool has_signals_ = false;
    std::unordered_map<Connection*, std::shared_ptr<Connection>> connections_{};
    std::unordered_map<std::string, size_t> per_address_{};
    size_t n_refused_ = 0; // that have not closed yet
};

Server::Server(const Options& options, Handler handler) : impl_(std::make_unique<Impl>(options, std::move(handler))) {}

Server::~Server() = default;

std::string Server::url() const {
    return impl_->listener_.url();
}

uint16_t Server::port() const {
    return impl_->listener_.port();
}

void Server::run() {
    impl_->run();
}

void Server::post(std::function<void()> task) {
    asio::post(impl_->io_, std::move(task));
}

void Server::after(std::chrono::milliseconds delay, std::function<void()> task) {
    const auto timer = std::make_shared<asio::steady_timer>(impl_->io_, delay);
    timer->async_wait([timer, task = std::move(task)](const ErrorCode& code) {
        if (!code) task();
    });
}

void Server::on_signal(std::function<void(int signal)> callback) {
    impl_->on_signal(std::move(callback));
}

void Server::stop_accepting() {
    impl_->stop_accepting();
}

void Server::stop() {
    asio::post(impl_->io_, [this] { impl_->stop(); });
}

Counts Server::counts() const {
    const Common& common = impl_->common_;
    return {common.accepted, common.refused, common.open, common.streaming};
}

} // namespace auspex::http
