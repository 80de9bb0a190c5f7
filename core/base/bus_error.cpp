#include "core/base/bus_error.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

#include "core/base/exit_code.hpp"
#include "core/base/mapping_table.hpp"

namespace sidestream::core {
namespace {

// Signal handlers have no argument for a context: this is why both are static.
std::array<char, 101> speaker;
std::atomic_flag has_spoken;

// Text without memory of its own: nothing here may allocate.
class Line {
 public:
  Line& add(std::string_view text) noexcept {
    const std::size_t count = std::min(text.size(), text_.size() - length_);
    std::copy_n(text.begin(), count, text_.begin() + static_cast<std::ptrdiff_t>(length_));
    length_ += count;
    return *this;
  }
  Line& add(std::size_t number) noexcept {
    std::array<char, 20> digits;
    std::size_t first = digits.size();
    do {
      digits[--first] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    return add({digits.data() + first, digits.size() - first});
  }
  void write() const noexcept {
    if (::write(STDERR_FILENO, text_.data(), length_) < 0) return;  // there is nobody to tell
  }

 private:
  std::array<char, 1024> text_;
  std::size_t length_ = 0;
};

void handle(int, siginfo_t* info, void*) {
  const MappedPlace place = find_mapping(info->si_addr);
  if (info->si_code <= 0 || place.file[0] == '\0') {  // sent by somebody, or no file of ours
    ::signal(SIGBUS, SIG_DFL);
    if (info->si_code <= 0) ::raise(SIGBUS);
    return;  // the access is tried again
  }
  while (has_spoken.test_and_set()) ::pause();  // another thread is about to end the process
  Line()
      .add(speaker.data())
      .add(": ")
      .add(place.file.data())
      .add(", byte ")
      .add(place.offset_bytes)
      .add(
          ": expected what was there when the file was opened, found nothing: it was cut short "
          "while it is in use, or its disk cannot be read. Put it back as it was, and start "
          "again\n")
      .write();
  ::_exit(static_cast<int>(ExitCode::kData));
}

}  // namespace

void explain_bus_errors(std::string_view who) noexcept {
  const std::size_t length = std::min(who.size(), speaker.size() - 1);
  std::copy_n(who.begin(), length, speaker.begin());
  speaker[length] = '\0';
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGBUS, &action, nullptr);
}

}  // namespace sidestream::core
