#include "comm/life_lines.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace sidestream::comm {
namespace {

constexpr char kWelcome = 'w';
constexpr char kHere = 'h';
constexpr char kGoodbye = 'g';

// What a caller says first.
struct Greeting {
  std::array<std::uint8_t, 16> token{};
  std::int32_t rank = 0;
};

core::UniqueFd open_socket(int family) {
  return core::UniqueFd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// An address as the calls of the system take it.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  sockaddr* get() noexcept { return reinterpret_cast<sockaddr*>(&storage); }
};

// Of all zeros: any address of this machine.
SocketAddress ipv4_address(const HostAddress& host, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = port;
  std::memcpy(&address.sin_addr, host.data() + host.size() - sizeof(address.sin_addr),
              sizeof(address.sin_addr));
  SocketAddress result{.bytes = sizeof(address)};
  std::memcpy(&result.storage, &address, sizeof(address));
  return result;
}

SocketAddress ipv6_address(const HostAddress& host, std::uint16_t port) {
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_port = port;
  std::memcpy(&address.sin6_addr, host.data(), host.size());
  SocketAddress result{.bytes = sizeof(address)};
  std::memcpy(&result.storage, &address, sizeof(address));
  return result;
}

struct Listening {
  core::UniqueFd socket;
  std::uint16_t port = 0;  // 0: nothing can be listened on
};

Listening listen_on(core::UniqueFd socket, SocketAddress address) {
  const bool listening = socket && ::bind(socket.get(), address.get(), address.bytes) == 0 &&
                         ::listen(socket.get(), SOMAXCONN) == 0 &&
                         ::getsockname(socket.get(), address.get(), &address.bytes) == 0;
  if (!listening) return {};
  // The port lies at the same place for both families.
  sockaddr_in port{};
  std::memcpy(&port, &address.storage, sizeof(port));
  return {.socket = std::move(socket), .port = port.sin_port};
}

// For callers of both families; of IPv4 alone where the system has no IPv6.
Listening listen_everywhere() {
  core::UniqueFd both = open_socket(AF_INET6);
  const int off = 0;
  if (both) ::setsockopt(both.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  Listening listening = listen_on(std::move(both), ipv6_address({}, 0));
  return listening.port != 0 ? std::move(listening)
                             : listen_on(open_socket(AF_INET), ipv4_address({}, 0));
}

bool send_all(int socket, const void* data, std::size_t bytes) {
  return ::send(socket, data, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

// A call to each address of the listener.
std::vector<core::UniqueFd> calls_to(const LifeLineAddress& address) {
  std::vector<core::UniqueFd> calls;
  for (const HostAddress& host : address.hosts) {
    if (host == HostAddress{}) break;
    const bool old = is_ipv4(host);
    core::UniqueFd call = open_socket(old ? AF_INET : AF_INET6);
    SocketAddress target =
        old ? ipv4_address(host, address.port) : ipv6_address(host, address.port);
    const bool begun =
        call && (::connect(call.get(), target.get(), target.bytes) == 0 || errno == EINPROGRESS);
    if (begun) calls.push_back(std::move(call));
  }
  return calls;
}

enum class Answer { kNone, kWelcome, kRefused };

// Says who calls, once the connection stands, and looks for the answer.
class SocketCall {
 public:
  explicit SocketCall(core::UniqueFd socket) : socket_(std::move(socket)) {}

  pollfd question() const {
    return {.fd = socket_.get(),
            .events = static_cast<short>(greeted_ ? POLLIN : POLLOUT),
            .revents = 0};
  }
  Answer take(short events, const Greeting& greeting) {
    if (events == 0) return Answer::kNone;
    if (!greeted_) {
      greeted_ = true;
      return send_all(socket_.get(), &greeting, sizeof(greeting)) ? Answer::kNone
                                                                  : Answer::kRefused;
    }
    char answer = 0;
    const bool welcome = ::recv(socket_.get(), &answer, 1, 0) == 1 && answer == kWelcome;
    return welcome ? Answer::kWelcome : Answer::kRefused;
  }
  core::UniqueFd take_socket() { return std::move(socket_); }

 private:
  core::UniqueFd socket_;
  bool greeted_ = false;
};

}  // namespace

LifeLineListener::LifeLineListener() {
  Listening listening = listen_everywhere();
  const bool named = ::getrandom(address_.token.data(), address_.token.size(), 0) ==
                     static_cast<ssize_t>(address_.token.size());
  if (listening.port == 0 || !named) return;
  socket_ = std::move(listening.socket);
  address_.port = listening.port;
  const std::vector<HostAddress> hosts = own_addresses(network_interfaces());
  std::copy_n(hosts.begin(), std::min(hosts.size(), address_.hosts.size()), address_.hosts.begin());
}

std::optional<LifeLineListener::Caller> LifeLineListener::accept() {
  if (address_.port == 0) return std::nullopt;
  core::UniqueFd caller(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (caller) strangers_.push_back(std::move(caller));
  for (auto stranger = strangers_.begin(); stranger != strangers_.end(); ++stranger) {
    Greeting greeting;
    const ssize_t bytes = ::recv(stranger->get(), &greeting, sizeof(greeting), 0);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    core::UniqueFd line = std::move(*stranger);
    strangers_.erase(stranger);
    const bool ours = bytes == static_cast<ssize_t>(sizeof(greeting)) &&
                      greeting.token == address_.token &&
                      std::find(known_.begin(), known_.end(), greeting.rank) == known_.end();
    if (!ours || !send_all(line.get(), &kWelcome, 1)) return std::nullopt;
    known_.push_back(greeting.rank);
    return Caller{.rank = greeting.rank, .line = std::move(line)};
  }
  return std::nullopt;
}

core::UniqueFd call_life_line(const LifeLineAddress& address, int rank,
                              std::chrono::milliseconds limit) {
  if (address.port == 0) return {};
  std::vector<SocketCall> calls;
  for (core::UniqueFd& socket : calls_to(address)) calls.emplace_back(std::move(socket));
  const Greeting greeting{.token = address.token, .rank = rank};
  const auto end = std::chrono::steady_clock::now() + limit;
  while (!calls.empty() && std::chrono::steady_clock::now() < end) {
    std::vector<pollfd> questions;
    for (const SocketCall& call : calls) questions.push_back(call.question());
    ::poll(questions.data(), questions.size(), 20);
    for (std::size_t i = calls.size(); i-- > 0;) {
      const Answer answer = calls[i].take(questions[i].revents, greeting);
      if (answer == Answer::kWelcome) return calls[i].take_socket();
      if (answer == Answer::kRefused) calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  return {};
}

void LifeLines::add(int rank, core::UniqueFd line) {
  if (line && send_all(line.get(), &kHere, 1))
    lines_.push_back({.rank = rank, .socket = std::move(line)});
}

std::optional<int> LifeLines::first_gone() noexcept {
  if (left_) return std::nullopt;
  for (auto line = lines_.begin(); line != lines_.end();) {
    char word = 0;
    const ssize_t bytes = ::recv(line->socket.get(), &word, 1, MSG_DONTWAIT);
    const bool gone = bytes == 0 || (bytes < 0 && errno == ECONNRESET);
    if (gone && line->stands) return line->rank;
    const bool silent = bytes < 0 && (errno == EAGAIN || errno == EINTR);
    const bool here = bytes == 1 && word == kHere;
    if (here) line->stands = true;
    // After a goodbye, or an error that says nothing about the process, there is nothing to watch.
    if (!here) line = silent ? line + 1 : lines_.erase(line);
  }
  return std::nullopt;
}

// What is left unread would make the kernel reset the connection at the end of this process, and a
// reset overtakes the goodbye.
void LifeLines::say_goodbye() noexcept {
  static_cast<void>(first_gone());
  left_ = true;
  for (const Line& line : lines_) send_all(line.socket.get(), &kGoodbye, 1);
}

}  // namespace sidestream::comm
