#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "launch/reporting/progress_reporter.hpp"
#include "launch/reporting/progress_text.hpp"

namespace sidestream::launch {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Collects what is written to a descriptor.
class Capture {
 public:
  Capture() {
    if (pipe2(ends_, O_NONBLOCK) != 0) std::abort();
  }
  ~Capture() {
    close(ends_[0]);
    close(ends_[1]);
  }
  int fd() const { return ends_[1]; }
  std::string text() const {
    std::string all;
    char buffer[4096];
    for (ssize_t n; (n = read(ends_[0], buffer, sizeof buffer)) > 0;)
      all.append(buffer, static_cast<std::size_t>(n));
    return all;
  }

 private:
  int ends_[2];
};

StepMetrics metrics_at(std::int64_t step) {
  return {.step = step,
          .epoch = 1,
          .loss = 2.34567,
          .lr = 6e-4,
          .batch_cost_s = 0.5,
          .reader_cost_s = 0.001,
          .samples_per_s = 31.2,
          .tokens_per_s = 12345,
          .mfu = 0.451,
          .memory_bytes = 512'000'000,
          .eta_s = 80};
}

int lines_in(const std::string& text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

TEST(ProgressTextTest, progress_line_has_every_field) {
  EXPECT_EQ(progress_line(metrics_at(10), 200),
            "epoch 1, step 10/200, loss 2.3457, lr 6.00e-04, batch_cost 0.5000 s, reader_cost "
            "0.0010 s, ips 31.2 "
            "samples/s 12345 tokens/s, MFU 45.1 %, memory 512 MB, ETA 0:01:20");
}

TEST(ProgressTextTest, progress_line_not_measured_is_a_dash) {
  StepMetrics metrics = {.step = 1, .val_loss = 3.5};

  const std::string line = progress_line(metrics, 2);

  EXPECT_THAT(line, HasSubstr("MFU -, memory -, ETA -, val_loss 3.5000"));
}

TEST(ProgressTextTest, progress_bar_fits_every_width) {
  for (int width = 1; width <= 200; ++width) {
    const std::string bar = progress_bar(metrics_at(10), 200, {.width_columns = width});
    EXPECT_LT(static_cast<int>(bar.size()), std::max(width, 2)) << bar;
  }
  EXPECT_THAT(progress_bar(metrics_at(100), 200, {.width_columns = 100}),
              HasSubstr("####################--------------------  step 100/200  loss 2.3457  "
                        "12.3k tok/s  ETA 0:01:20"));
}

TEST(ProgressTextTest, duration_text_known_answers) {
  EXPECT_EQ(duration_text(0), "0:00:00");
  EXPECT_EQ(duration_text(3 * 3600 + 4 * 60 + 5), "3:04:05");
  EXPECT_EQ(duration_text(2 * 86400 + 1), "2d 00:00:01");
  EXPECT_EQ(duration_text(-1), "-");
}

TEST(ProgressReporterTest, update_without_terminal_prints_plain_lines) {
  const Capture capture;
  ProgressReporter progress({.total_steps = 3,
                             .terminal = {.fd = capture.fd()},
                             .line_interval = std::chrono::milliseconds(0)});

  progress.update(metrics_at(1));
  progress.update(metrics_at(2));
  progress.finish();

  EXPECT_EQ(capture.text(),
            progress_line(metrics_at(1), 3) + "\n" + progress_line(metrics_at(2), 3) + "\n");
}

TEST(ProgressReporterTest, update_without_terminal_keeps_the_interval_except_for_what_matters) {
  const Capture capture;
  ProgressReporter progress({.total_steps = 9, .terminal = {.fd = capture.fd()}});

  for (int step = 1; step <= 8; ++step) progress.update(metrics_at(step));
  progress.update(metrics_at(9), Importance::kAlways);

  const std::string text = capture.text();
  EXPECT_EQ(lines_in(text), 2) << text;
  EXPECT_THAT(text, HasSubstr("step 9/9"));
}

TEST(ProgressReporterTest, update_on_a_terminal_redraws_at_most_ten_times_a_second) {
  const Capture capture;
  ProgressReporter progress(
      {.total_steps = 100, .terminal = {.fd = capture.fd(), .interactive = true}});

  const auto begin = std::chrono::steady_clock::now();
  for (int step = 1; step <= 100; ++step) {
    progress.update(metrics_at(step));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }

  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;

  const std::string text = capture.text();
  const auto redraws = static_cast<double>(std::count(text.begin(), text.end(), '\r'));
  EXPECT_GE(redraws, 2);
  EXPECT_LE(redraws, 10 * took.count() + 2);  // the first, and the last
  EXPECT_LT(redraws, 100);
}

TEST(ProgressReporterTest, finish_leaves_the_last_state_and_a_new_line) {
  const Capture capture;
  ProgressReporter progress(
      {.total_steps = 3, .terminal = {.fd = capture.fd(), .interactive = true}});
  progress.update(metrics_at(1));
  progress.update(metrics_at(3));

  progress.finish();
  progress.finish();

  const std::string text = capture.text();
  EXPECT_EQ(lines_in(text), 1);
  EXPECT_THAT(text.substr(text.rfind('\r')), HasSubstr("step 3/3"));
  EXPECT_EQ(text.back(), '\n');
}

TEST(ProgressReporterTest, warn_clears_the_bar_and_draws_it_again) {
  const Capture capture;
  ProgressReporter progress(
      {.total_steps = 3,
       .terminal = {.fd = capture.fd(), .interactive = true, .width_columns = 60}});
  progress.update(metrics_at(1));
  capture.text();

  progress.warn("little shared memory");

  const std::string text = capture.text();
  EXPECT_EQ(text.rfind("\r\033[Kwarning: little shared memory\n\r\033[K", 0), 0u) << text;
  EXPECT_THAT(text, HasSubstr("step 1/3"));
  EXPECT_THAT(text, Not(HasSubstr("\033[33m")));
}

TEST(ProgressReporterTest, update_with_the_screen_gone_goes_on) {
  const int full = open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);

  {
    ProgressReporter progress({.total_steps = 3, .terminal = {.fd = full, .interactive = true}});
    EXPECT_NO_THROW(progress.update(metrics_at(1)));
    EXPECT_NO_THROW(progress.warn("text"));
  }
  close(full);
}

TEST(TerminalTest, detect_pipe_is_not_interactive) {
  const Capture capture;

  const Terminal terminal = detect_terminal(capture.fd());

  EXPECT_FALSE(terminal.interactive);
  EXPECT_FALSE(terminal.color);
  EXPECT_EQ(terminal.current_width_columns(), 80);
  EXPECT_EQ(terminal.text_width_columns(), 100u) << "for whoever reads the file";
}

class PseudoTerminalTest : public ::testing::Test {
 protected:
  void SetUp() override {
    primary_ = posix_openpt(O_RDWR | O_NOCTTY);
    ASSERT_GE(primary_, 0);
    ASSERT_EQ(grantpt(primary_), 0);
    ASSERT_EQ(unlockpt(primary_), 0);
    secondary_ = open(ptsname(primary_), O_RDWR | O_NOCTTY);
    ASSERT_GE(secondary_, 0);
    setenv("TERM", "xterm", 1);
    unsetenv("NO_COLOR");
    unsetenv("SIDESTREAM_TERMINAL_COLUMNS");
  }
  void TearDown() override {
    close(secondary_);
    close(primary_);
    unsetenv("NO_COLOR");
    unsetenv("SIDESTREAM_TERMINAL_COLUMNS");
  }
  void set_columns(unsigned short columns) const {
    const winsize size{.ws_row = 24, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
    ASSERT_EQ(ioctl(secondary_, TIOCSWINSZ, &size), 0);
  }

  int primary_ = -1;
  int secondary_ = -1;
};

TEST_F(PseudoTerminalTest, detect_honours_no_color) {
  set_columns(70);

  const Terminal colored = detect_terminal(secondary_);
  setenv("NO_COLOR", "1", 1);
  const Terminal plain = detect_terminal(secondary_);

  EXPECT_TRUE(colored.interactive);
  EXPECT_TRUE(colored.color);
  EXPECT_EQ(colored.current_width_columns(), 70);
  EXPECT_TRUE(plain.interactive);
  EXPECT_FALSE(plain.color);
}

TEST_F(PseudoTerminalTest, width_follows_the_window) {
  set_columns(160);
  setenv("SIDESTREAM_TERMINAL_COLUMNS", "160", 1);
  const Terminal terminal = detect_terminal(secondary_);
  set_columns(80);

  EXPECT_EQ(terminal.current_width_columns(), 80);
}

TEST_F(PseudoTerminalTest, text_is_as_wide_as_the_terminal_and_no_wider_than_it_is_read_well) {
  for (const auto& [columns, of_text] :
       {std::pair<unsigned short, std::size_t>{72, 72}, {250, 100}, {8, 40}}) {
    set_columns(columns);
    EXPECT_EQ(detect_terminal(secondary_).text_width_columns(), of_text) << columns;
  }
}

TEST_F(PseudoTerminalTest, a_line_that_is_drawn_again_stays_one_line) {
  set_columns(8);
  const Terminal terminal = detect_terminal(secondary_);

  EXPECT_EQ(terminal.redrawn("12.5 % of 3 MB"), "\r12.5 % \033[K");
  EXPECT_EQ(terminal.redrawn(""), "\r\033[K");
}

TEST_F(PseudoTerminalTest, nothing_is_drawn_again_on_a_dumb_terminal) {
  set_columns(80);
  setenv("TERM", "dumb", 1);

  EXPECT_FALSE(detect_terminal(secondary_).interactive);
}

TEST_F(PseudoTerminalTest, detect_terminal_of_an_mpi_launcher_is_interactive_only_when_told) {
  set_columns(0);

  const Terminal bare = detect_terminal(secondary_);
  setenv("SIDESTREAM_TERMINAL_COLUMNS", "93", 1);
  const Terminal told = detect_terminal(secondary_);

  EXPECT_FALSE(bare.interactive);
  EXPECT_TRUE(told.interactive);
  EXPECT_EQ(told.current_width_columns(), 93);
}

}  // namespace
}  // namespace sidestream::launch
