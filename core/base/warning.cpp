#include "core/base/warning.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "core/base/printable.hpp"
#include "core/base/screen.hpp"

namespace sidestream::core {
namespace {

// It may be led elsewhere at any time.
class StandardError {
 public:
  void write(std::string text) {
    const std::lock_guard lock(mutex_);
    struct stat now {};
    if (::fstat(STDERR_FILENO, &now) != 0) return;
    if (!screen_ || now.st_dev != device_ || now.st_ino != inode_) {
      screen_.emplace(STDERR_FILENO);
      device_ = now.st_dev;
      inode_ = now.st_ino;
    }
    screen_->write(std::move(text));
    // A file server, or who reads a named pipe, may be back for the next line.
    if (screen_->is_gone()) screen_.reset();
  }

 private:
  std::mutex mutex_;
  std::optional<Screen> screen_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

void print(std::string_view begin, std::string_view text) noexcept {
  try {
    // Never destroyed: threads may warn until the end.
    static StandardError* const standard_error = new StandardError;
    standard_error->write(std::string(begin).append(printable_lines(text)).append("\n"));
  } catch (const std::exception&) {
    return;  // no memory for a line: what has none left says so itself
  }
}

}  // namespace

void print_note(std::string_view text) noexcept { print("sidestream: ", text); }

void print_warning(std::string_view text) noexcept { print("sidestream: warning: ", text); }

}  // namespace sidestream::core
