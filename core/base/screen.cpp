#include "core/base/screen.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <utility>

namespace sidestream::core {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kPatience{1000};

// Other processes share what is open, and with it whether writes wait: it is opened once more.
UniqueFd opened_again(int fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  return UniqueFd(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

bool has_no_room(int error_number) noexcept {
  return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
}

// What a terminal that is ready takes without a wait: 256 bytes at one go, in which the ends of
// lines and tabs, of which it makes several bytes, do not lie.
std::size_t terminal_piece(const std::string& text) noexcept {
  return std::clamp<std::size_t>(text.find_first_of("\n\r\t"), 1, 256);
}

// Whether it takes something before the deadline. A signal is no answer.
bool is_ready(int fd, steady_clock::time_point deadline) noexcept {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    pollfd one{.fd = fd, .events = POLLOUT, .revents = 0};
    const int found = ::poll(&one, 1, std::max(0, static_cast<int>(left.count())));
    if (found >= 0 || errno != EINTR) return found > 0;
  }
}

}  // namespace

Screen::Screen(int fd) : fd_(fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return;
  is_socket_ = S_ISSOCK(status.st_mode);
  is_terminal_ = S_ISCHR(status.st_mode) && ::isatty(fd) == 1;
  is_pipe_ = S_ISFIFO(status.st_mode);
  if (is_pipe_ || is_terminal_) own_ = opened_again(fd);
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
    if (written < 0 && has_no_room(errno)) return false;
    if (written < 0 && errno != EAGAIN) {
      is_gone_ = true;
      rest_.clear();
      return false;
    }
    is_stuck_ = steady_clock::now() >= deadline || !is_ready(own_ ? own_.get() : fd_, deadline);
    if (is_stuck_) return false;
  }
  return true;
}

// As write(2), without a wait.
ssize_t Screen::write_some() const noexcept {
  if (is_socket_) return ::send(fd_, rest_.data(), rest_.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  if (own_) return ::write(own_.get(), rest_.data(), rest_.size());
  // Nothing that could make it wait, or what could not be opened again: somebody else's terminal.
  if (!is_ready(fd_, steady_clock::now())) {
    errno = EAGAIN;
    return -1;
  }
  const std::size_t piece_bytes = is_terminal_ ? terminal_piece(rest_)
                                  : is_pipe_   ? PIPE_BUF
                                               : rest_.size();
  return ::write(fd_, rest_.data(), std::min(rest_.size(), piece_bytes));
}

}  // namespace sidestream::core
