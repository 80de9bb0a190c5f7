// What people look on with stops: without a way around it each of these would wait for ever.
#include "core/base/screen.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/core/base/full_disk.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::core {
namespace {

constexpr std::size_t kLineBytes = 100;
constexpr int kManyLines = 5000;  // more than a pipe, a socket or a terminal keeps

std::string line_of(int number) {
  std::string line = std::to_string(number);
  line.resize(kLineBytes - 1, '.');
  return line + "\n";
}

// All that is there, of a descriptor that others write to.
std::string taken_from(int fd) {
  std::string text;
  std::string piece(1 << 16, ' ');
  for (pollfd one{.fd = fd, .events = POLLIN, .revents = 0}; ::poll(&one, 1, 100) > 0;) {
    const ssize_t got = ::read(fd, piece.data(), piece.size());
    if (got <= 0) break;
    text.append(piece, 0, static_cast<std::size_t>(got));
  }
  return text;
}

// The numbers of lines that are whole; -1 for any other.
std::vector<int> numbers_in(const std::string& text) {
  std::vector<int> numbers;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.ends_with('\r')) line.pop_back();  // of a terminal
    const int number = std::atoi(line.c_str());
    numbers.push_back(line + "\n" == line_of(number) ? number : -1);
  }
  return numbers;
}

// Many lines to somebody who does not read, who then reads again.
void expect_lines_are_left_out_whole(int written, int read) {
  Screen screen(written);
  for (int i = 0; i < kManyLines; ++i) screen.write(line_of(i));

  std::string text = taken_from(read);
  screen.write(line_of(kManyLines));
  text += taken_from(read);

  const std::vector<int> numbers = numbers_in(text);
  ASSERT_GT(numbers.size(), 10u);
  EXPECT_LT(numbers.size(), static_cast<std::size_t>(kManyLines));
  for (std::size_t i = 0; i + 1 < numbers.size(); ++i) EXPECT_EQ(numbers[i], static_cast<int>(i));
  EXPECT_EQ(numbers.back(), kManyLines);
}

struct PseudoTerminal {
  PseudoTerminal() : primary(::posix_openpt(O_RDWR | O_NOCTTY)) {
    ::grantpt(primary.get());
    ::unlockpt(primary.get());
    secondary.reset(::open(::ptsname(primary.get()), O_RDWR | O_NOCTTY));
  }

  UniqueFd primary, secondary;
};

TEST(ScreenTest, a_pipe_that_nobody_reads_misses_whole_lines) {
  int ends[2] = {};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read(ends[0]), written(ends[1]);

  expect_lines_are_left_out_whole(written.get(), read.get());

  EXPECT_EQ(::fcntl(written.get(), F_GETFL) & O_NONBLOCK, 0) << "which others share";
}

TEST(ScreenTest, a_socket_that_nobody_reads_misses_whole_lines) {
  int ends[2] = {};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  const UniqueFd read(ends[0]), written(ends[1]);

  expect_lines_are_left_out_whole(written.get(), read.get());
}

TEST(ScreenTest, a_terminal_that_nobody_reads_misses_whole_lines) {
  const PseudoTerminal terminal;

  expect_lines_are_left_out_whole(terminal.secondary.get(), terminal.primary.get());
}

TEST(ScreenTest, a_terminal_that_another_program_made_impatient_is_not_gone) {
  const PseudoTerminal terminal;
  ASSERT_EQ(::fcntl(terminal.secondary.get(), F_SETFL, O_NONBLOCK), 0);

  expect_lines_are_left_out_whole(terminal.secondary.get(), terminal.primary.get());
}

// As when it belongs to somebody else: here no more files may be opened meanwhile.
Screen not_opened_again(int fd) {
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &none);
  Screen screen(fd);
  ::setrlimit(RLIMIT_NOFILE, &before);
  return screen;
}

TEST(ScreenTest, a_terminal_that_cannot_be_opened_again_holds_nobody_up) {
  const PseudoTerminal terminal;
  Screen screen = not_opened_again(terminal.secondary.get());
  std::string lines;
  for (int i = 0; i < kManyLines; ++i) lines += line_of(i);

  screen.write(lines);
  screen.write(line_of(kManyLines));

  EXPECT_GT(numbers_in(taken_from(terminal.primary.get())).size(), 10u);
}

TEST(ScreenTest, a_signal_does_not_end_the_wait_for_a_reader) {
  int ends[2] = {};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read(ends[0]), written(ends[1]);
  const auto pipe_bytes = static_cast<std::size_t>(::fcntl(written.get(), F_GETPIPE_SZ));
  const std::string full = std::string(pipe_bytes - 1, '-') + "\n";
  ASSERT_EQ(::write(written.get(), full.data(), full.size()), static_cast<ssize_t>(full.size()));
  Screen screen(written.get());
  const auto before = ::signal(SIGUSR1, [](int) {});
  std::string text;

  std::thread reader([&, writer = ::pthread_self()] {
    for (int i = 0; i < 5; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      ::pthread_kill(writer, SIGUSR1);
    }
    text = taken_from(read.get());
  });
  screen.write(line_of(1));
  reader.join();
  ::signal(SIGUSR1, before);

  text += taken_from(read.get());
  EXPECT_EQ(numbers_in(text).back(), 1);
}

TEST(ScreenTest, a_terminal_that_is_stopped_goes_on_later) {
  const PseudoTerminal terminal;
  Screen screen(terminal.secondary.get());
  screen.write(line_of(0));
  ASSERT_EQ(::tcflow(terminal.secondary.get(), TCOOFF), 0);  // Ctrl-S

  for (int i = 1; i < 10; ++i) screen.write(line_of(i));
  ASSERT_EQ(::tcflow(terminal.secondary.get(), TCOON), 0);
  screen.write(line_of(10));

  EXPECT_EQ(numbers_in(taken_from(terminal.primary.get())), (std::vector<int>{0, 10}));
}

TEST(ScreenTest, a_text_longer_than_a_pipe_comes_whole_to_who_reads_it) {
  int ends[2] = {};
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const UniqueFd read(ends[0]), written(ends[1]);
  Screen screen(written.get());
  std::string lines;
  for (int i = 0; i < kManyLines; ++i) lines += line_of(i);

  screen.write(lines);
  std::string text = taken_from(read.get());
  for (int i = 0; i < 100 && text.size() < lines.size(); ++i) {
    screen.write("left out, or behind it\n");
    text += taken_from(read.get());
  }

  EXPECT_EQ(text.substr(0, lines.size()), lines);
}

TEST(ScreenTest, a_file_on_a_full_disk_goes_on_once_there_is_room) {
  const ScratchFolder scratch;
  const UniqueFd file(::open((scratch / "log").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  Screen screen(file.get());
  {
    const FullDisk full(kLineBytes + kLineBytes / 2);
    for (int i = 0; i < 4; ++i) screen.write(line_of(i));
  }

  screen.write(line_of(4));

  EXPECT_EQ(numbers_in(read_file(scratch / "log")), (std::vector<int>{0, 1, 4}));
}

}  // namespace
}  // namespace sidestream::core
