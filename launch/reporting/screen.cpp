#include "launch/reporting/screen.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace sidestream::launch {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kPatience{1000};

// Other processes share what is open, and with it whether writes wait: it is opened once more.
core::UniqueFd opened_again(int fd, mode_t mode) {
  const bool may_wait = S_ISFIFO(mode) || (S_ISCHR(mode) && ::isatty(fd) == 1);
  if (!may_wait) return {};
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return core::UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

bool is_ready(int fd, milliseconds limit) noexcept {
  pollfd one{.fd = fd, .events = POLLOUT, .revents = 0};
  return ::poll(&one, 1, static_cast<int>(limit.count())) > 0;
}

}  // namespace

Screen::Screen(int fd) : fd_(fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return;
  own_ = opened_again(fd, status.st_mode);
  is_socket_ = S_ISSOCK(status.st_mode);
}

void Screen::write(std::string text) noexcept {
  if (is_gone_) return;
  const TimePoint deadline = steady_clock::now() + (is_stuck_ ? milliseconds(0) : kPatience);
  if (!push(deadline)) return;
  const std::size_t size = text.size();
  rest_ = std::move(text);
  if (push(deadline)) {
    is_stuck_ = false;
  } else if (rest_.size() == size) {
    rest_.clear();
  }
}

// Whether all is taken.
bool Screen::push(TimePoint deadline) noexcept {
  while (!rest_.empty()) {
    const ssize_t written = write_some();
    if (written > 0) {
      rest_.erase(0, static_cast<std::size_t>(written));
      continue;
    }
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno != EAGAIN) {
      is_gone_ = true;
      rest_.clear();
      return false;
    }
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    is_stuck_ = left.count() <= 0 || !is_ready(own_ ? own_.get() : fd_, left);
    if (is_stuck_) return false;
  }
  return true;
}

// As write(2), without a wait.
ssize_t Screen::write_some() const noexcept {
  if (is_socket_) return ::send(fd_, rest_.data(), rest_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (own_) return ::write(own_.get(), rest_.data(), rest_.size());
  // Nothing that could make it wait, or somebody else's terminal.
  if (!is_ready(fd_, milliseconds(0))) {
    errno = EAGAIN;
    return -1;
  }
  return ::write(fd_, rest_.data(), std::min<std::size_t>(rest_.size(), PIPE_BUF));
}

}  // namespace sidestream::launch
