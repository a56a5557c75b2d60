// Asio's names for what the server uses, and the one listening socket of a server: TCP or a unix socket.
#pragma once

#include <utility> // Asio 1.74 forgets it

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>

#include "server/http/http_server.h"

namespace auspex::http {

namespace asio = boost::asio;
using ErrorCode = boost::system::error_code;
using Socket = asio::generic::stream_protocol::socket;
using Acceptor = asio::basic_socket_acceptor<asio::generic::stream_protocol>;

class Listener {
  public:
    Listener(asio::io_context& io, const Options& options); // throws BindError
    ~Listener();
    Listener(const Listener&) = delete;
    Listener& operator=(const Listener&) = delete;

    Acceptor& acceptor() { return acceptor_; }
    const std::string& url() const { return url_; }
    uint16_t port() const { return port_; }
    void close(); // and removes the file of a unix socket, unless it is another's by now

  private:
    void bind_tcp(asio::io_context& io, const Options& options);
    void bind_unix(asio::io_context& io, const std::string& path);

    Acceptor acceptor_;
    std::string url_;
    uint16_t port_ = 0;
    std::string unix_path_; // empty: there is nothing to remove
    uint64_t device_ = 0;   // of the file
    uint64_t inode_ = 0;
};

// Readies a socket that was accepted; its peer as a Request names it. nullopt: it has left already.
std::optional<std::string> greet(Socket& socket);

} // namespace auspex::http
