#include "launch/verify/run_progress.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace sidestream::launch {
namespace {

double seconds(std::chrono::steady_clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

// The step of the last whole line; 0 when there is none.
std::int64_t last_step(const std::filesystem::path& file) {
  std::ifstream input(file, std::ios::binary | std::ios::ate);
  if (!input) return 0;
  constexpr std::streamoff kTail = 4096;
  const std::streamoff size = input.tellg();
  input.seekg(std::max<std::streamoff>(0, size - kTail));
  std::int64_t step = 0;
  for (std::string line; std::getline(input, line) && !input.eof();) {
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object()) step = json.value("step", step);
  }
  return step;
}

}  // namespace

void RunProgress::started(const PlannedRun&) { run_began_ = Clock::now(); }

void RunProgress::look(const PlannedRun& run) {
  constexpr std::chrono::milliseconds kInterval{500};
  if (!terminal_.interactive || Clock::now() - drawn_ < kInterval) return;
  drawn_ = Clock::now();
  redraw(fmt::format("run {} of {} ({}): step {} of {}{}", done_ + 1, runs_, describe(run),
                     last_step(run.folder / "metrics.jsonl"), run.steps, time_left()));
}

void RunProgress::finished(const PlannedRun& run, double step_ms) {
  ++done_;
  ++made_;
  say(fmt::format("run {} of {} ({}): {:.4g} ms a step, took {:.1f} s{}", done_, runs_,
                  describe(run), step_ms, seconds(Clock::now() - run_began_), time_left()));
}

void RunProgress::kept(const PlannedRun& run, double step_ms) {
  ++done_;
  say(fmt::format("run {} of {} ({}): {:.4g} ms a step, finished before", done_, runs_,
                  describe(run), step_ms));
}

void RunProgress::say(const std::string& line) {
  if (terminal_.interactive) std::fputs("\r\033[K", stdout);
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

std::string RunProgress::time_left() const {
  if (made_ == 0 || done_ == runs_) return "";
  const double left = seconds(Clock::now() - began_) / made_ * (runs_ - done_);
  return left < 90 ? fmt::format(", about {:.0f} s left", left)
                   : fmt::format(", about {:.0f} min left", left / 60);
}

void RunProgress::redraw(const std::string& line) {
  fmt::print("{}", terminal_.redrawn(line));
  std::fflush(stdout);
}

}  // namespace sidestream::launch
