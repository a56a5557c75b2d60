// Sockets: what the platform wants to be told.
#include "server/http/sockets.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>

#include <cstring>

#if !defined(BOOST_ASIO_WINDOWS)
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#endif

namespace auspex::http {

using asio::generic::stream_protocol;
using asio::ip::tcp;

namespace {

// Programs that this one starts do not inherit its connections; Asio does not see to it.
template <typename AnySocket> void keep_from_children([[maybe_unused]] AnySocket& socket) {
#if !defined(BOOST_ASIO_WINDOWS)
    ::fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
#endif
}

std::string bracketed(const std::string& host) {
    return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

#if !defined(BOOST_ASIO_WINDOWS)
void check(const ErrorCode& code) {
    if (code) throw boost::system::system_error(code);
}

// A socket that nobody listens on, left by a server that could not remove it.
bool is_stale(asio::io_context& io, const std::string& path) {
    struct stat file {};
    if (::lstat(path.c_str(), &file) != 0 || !S_ISSOCK(file.st_mode)) return false;
    asio::local::stream_protocol::socket probe(io, asio::local::stream_protocol());
    ErrorCode code;
    probe.non_blocking(true, code);
    probe.connect(asio::local::stream_protocol::endpoint(path), code);
    return code == asio::error::connection_refused;
}
#endif

} // namespace

Listener::Listener(asio::io_context& io, const Options& options) : acceptor_(io) {
    if (!options.unix_path.empty())
        bind_unix(io, options.unix_path);
    else
        bind_tcp(io, options);
}

Listener::~Listener() {
    close();
}

void Listener::bind_tcp(asio::io_context& io, const Options& options) {
    const std::string host = bracketed(options.host);
    ErrorCode code;
    tcp::resolver resolver(io);
    const auto found = resolver.resolve(options.host, std::to_string(options.port), tcp::resolver::passive, code);
    for (const auto& entry : found) {
        const tcp::endpoint endpoint = entry.endpoint();
        acceptor_.close(code);
        try {
            acceptor_.open(endpoint.protocol());
            keep_from_children(acceptor_);
#if !defined(BOOST_ASIO_WINDOWS) // there the option would let two servers have one port
            acceptor_.set_option(asio::socket_base::reuse_address(true));
#endif
            acceptor_.bind(endpoint);
            acceptor_.listen();
        } catch (const boost::system::system_error& error) {
            code = error.code();
            continue;
        }
        const auto bound = acceptor_.local_endpoint();
        tcp::endpoint local;
        local.resize(bound.size());
        std::memcpy(local.data(), bound.data(), bound.size());
        port_ = local.port();
        url_ = "http://" + host + ":" + std::to_string(port_);
        return;
    }
    throw BindError("cannot listen on " + host + ":" + std::to_string(options.port) + ": " +
                    (code ? code.message() : "it has no address"));
}

#if defined(BOOST_ASIO_WINDOWS)
void Listener::bind_unix(asio::io_context&, const std::string& path) {
    throw BindError("cannot listen on unix:" + path + ": not on this system");
}

void Listener::close() {
    ErrorCode code;
    acceptor_.close(code);
}
#else
void Listener::bind_unix(asio::io_context& io, const std::string& path) {
    const auto fail = [&](const std::string& why) { throw BindError("cannot listen on unix:" + path + ": " + why); };
    try {
        const asio::local::stream_protocol::endpoint endpoint(path);
        acceptor_.open(endpoint.protocol());
        keep_from_children(acceptor_);
        ::fchmod(acceptor_.native_handle(),
                 0600); // Linux makes the file with this mode; others learn it before listen()
        ErrorCode code;
        acceptor_.bind(endpoint, code);
        if (code == asio::error::address_in_use && is_stale(io, path)) {
            ::unlink(path.c_str());
            acceptor_.bind(endpoint, code);
        }
        check(code);
        struct stat file {};
        if (::chmod(path.c_str(), 0600) != 0 || ::stat(path.c_str(), &file) != 0)
            check(ErrorCode(errno, boost::system::system_category()));
        unix_path_ = path;
        device_ = static_cast<uint64_t>(file.st_dev);
        inode_ = static_cast<uint64_t>(file.st_ino);
        acceptor_.listen();
    } catch (const boost::system::system_error& error) {
        close();
        fail(error.code().message());
    }
    url_ = "unix:" + path;
}

void Listener::close() {
    struct stat file {};
    if (!unix_path_.empty() && ::stat(unix_path_.c_str(), &file) == 0 &&
        static_cast<uint64_t>(file.st_dev) == device_ && static_cast<uint64_t>(file.st_ino) == inode_)
        ::unlink(unix_path_.c_str());
    unix_path_.clear();
    ErrorCode code;
    acceptor_.close(code);
}
#endif

std::optional<std::string> greet(Socket& socket) {
    ErrorCode code;
    const auto remote = socket.remote_endpoint(code);
    if (!code) socket.non_blocking(true, code);
    if (code) return std::nullopt;
    keep_from_children(socket);
    const int family = remote.protocol().family();
    if (family != tcp::v4().family() && family != tcp::v6().family()) return "unix";
    socket.set_option(tcp::no_delay(true), code);
    tcp::endpoint peer;
    peer.resize(remote.size());
    std::memcpy(peer.data(), remote.data(), remote.size());
    const asio::ip::address address = peer.address();
    if (address.is_v6() && address.to_v6().is_v4_mapped())
        return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
    return address.to_string();
}

} // namespace auspex::http
