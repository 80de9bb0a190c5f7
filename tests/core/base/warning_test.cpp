// On the thread that warns a wait for a reader would be a hang.
#include "core/base/warning.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "core/base/file.hpp"
#include "core/base/standard_output.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::core {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Standard error leads into it meanwhile.
class ErrorPipe {
 public:
  ErrorPipe() : before_(::dup(STDERR_FILENO)) {
    int ends[2] = {};
    if (::pipe2(ends, O_CLOEXEC) != 0) ADD_FAILURE() << "no pipe";
    read_.reset(ends[0]);
    const UniqueFd written(ends[1]);
    ::dup2(written.get(), STDERR_FILENO);
  }
  ~ErrorPipe() { ::dup2(before_.get(), STDERR_FILENO); }
  ErrorPipe(const ErrorPipe&) = delete;
  ErrorPipe& operator=(const ErrorPipe&) = delete;

  void fill() {
    const std::string full(static_cast<std::size_t>(::fcntl(read_.get(), F_GETPIPE_SZ)), '-');
    write_all(STDERR_FILENO, full, "pipe");
  }

  // All that is there: something has to be.
  std::string taken() {
    std::string text(static_cast<std::size_t>(::fcntl(read_.get(), F_GETPIPE_SZ)), ' ');
    const ssize_t got = ::read(read_.get(), text.data(), text.size());
    text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
    return text;
  }

 private:
  UniqueFd before_, read_;
};

TEST(WarningTest, nobody_who_reads_them_is_waited_for) {
  ErrorPipe pipe;
  pipe.fill();

  print_warning("left out");
  print_note("left out, too");
  const std::string full = pipe.taken();
  print_warning("read again");

  EXPECT_THAT(full, Not(HasSubstr("left out")));
  EXPECT_EQ(pipe.taken(), "sidestream: warning: read again\n");
}

TEST(WarningTest, they_go_where_standard_error_leads_by_now) {
  print_note("a test of warnings begins");
  ErrorPipe first;
  print_note("one");
  {
    ErrorPipe second;
    print_warning("two");
    EXPECT_EQ(second.taken(), "sidestream: warning: two\n");
  }
  print_note("three");

  EXPECT_EQ(first.taken(), "sidestream: one\nsidestream: three\n");
}

// As a log on a file server does, or a named pipe that is read by one program after another.
TEST(WarningTest, standard_error_that_failed_is_tried_again) {
  const ScratchFolder scratch;
  const std::string path = scratch / "pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const UniqueFd before(::dup(STDERR_FILENO));
  UniqueFd reader(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  const UniqueFd written(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  ::dup2(written.get(), STDERR_FILENO);
  const auto old_handler = std::signal(SIGPIPE, SIG_IGN);

  reader.reset();
  print_warning("nobody reads");
  reader.reset(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  print_warning("somebody does");

  ::dup2(before.get(), STDERR_FILENO);
  std::signal(SIGPIPE, old_handler);
  std::string text(100, ' ');
  const ssize_t got = ::read(reader.get(), text.data(), text.size());
  EXPECT_EQ(text.substr(0, got < 0 ? 0 : static_cast<std::size_t>(got)),
            "sidestream: warning: somebody does\n");
}

// Names of files may clear the screen, in the form of one byte and in that of two.
TEST(WarningTest, control_characters_are_shown_as_such) {
  constexpr const char* kName = "k\x1B[2J\n\xC2\x9B\x32J\x7F";
  ::testing::internal::CaptureStderr();
  print_warning(kName);
  print_remark(std::string(kName) + "\n");

  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "sidestream: warning: k?[2J\n?2J?\nk?[2J\n?2J?\n");
}

}  // namespace
}  // namespace sidestream::core
