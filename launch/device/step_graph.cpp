#include "launch/device/step_graph.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "core/base/error.hpp"
#include "launch/process/failure.hpp"
#include "profiling/ranges/ranges.hpp"

namespace sidestream::launch {
namespace {

using core::ExitCode;

// What one rank says of its capture to the others: a letter for the exit code, then words.
constexpr char kMemory = 'M';
constexpr char kConfig = 'C';

std::string problem_of(const std::exception& error) {
  const Failure failure = describe_failure(error);
  return (failure.code == ExitCode::kMemory ? kMemory : kConfig) + failure.message;
}

bool is_memory(const std::string& problem) { return problem.front() == kMemory; }

std::string text_of(const std::string& problem) {
  return fmt::format("--cuda-graph on: the step cannot be captured: {}. Leave --cuda-graph out{}",
                     problem.substr(1), is_memory(problem) ? ", or make the step smaller" : "");
}

[[noreturn]] void throw_agreed(const std::string& problem) {
  throw core::AgreedError(text_of(problem),
                          is_memory(problem) ? ExitCode::kMemory : ExitCode::kConfig);
}

[[noreturn]] void throw_alone(const std::string& problem) {
  if (is_memory(problem)) throw core::MemoryError(text_of(problem));
  throw core::ConfigError(text_of(problem));
}

}  // namespace

StepGraph::StepGraph(GraphEngine& engine, comm::CollectiveCapture& collectives,
                     StepGraphConfig config)
    : engine_(engine), collectives_(collectives), config_(std::move(config)) {}

StepWay StepGraph::run(const StepSituation& situation, const std::function<void()>& work) {
  follow_layout(situation.layout);
  if (!situation.eager_because.empty() || !(captured_ || is_warm())) {
    work();
    ++warm_steps_;
    ++use_.eager_steps;
    return StepWay::kEager;
  }
  const bool first = !captured_;
  if (first) capture(work);
  replay();
  return first ? StepWay::kCaptured : StepWay::kReplayed;
}

std::string StepGraph::take_news() { return std::exchange(news_, {}); }

void StepGraph::follow_layout(std::uint64_t layout) {
  if (layout == layout_) return;
  if (captured_) {
    drop();
    news_ = fmt::format(
        "CUDA graph: dropped, for the buckets have changed; captured anew after {} steps",
        kWarmUpSteps);
  }
  layout_ = layout;
  warm_steps_ = 0;
}

void StepGraph::capture(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  const std::string problem = agree(try_to_capture(work));
  if (!problem.empty()) {
    give_up();
    throw_agreed(problem);
  }
  captured_ = true;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ++use_.captures;
  use_.capture_s += seconds;
  news_ = fmt::format("CUDA graph: the step was captured in {:.2f} s and is replayed from here on",
                      seconds);
}

// Peers that this rank's failure holds up in NCCL cannot come: then it ends the job with its own.
std::string StepGraph::agree(const std::string& mine) {
  try {
    return config_.agree(mine);
  } catch (const core::Error&) {
    give_up();
    if (mine.empty()) throw;
    throw_alone(mine);
  }
}

// Empty: it is there. What peers or NCCL have done is thrown: it is not about the capture.
std::string StepGraph::try_to_capture(const std::function<void()>& work) {
  collectives_.begin_capture();
  try {
    engine_.capture(work);
    collectives_.end_capture();
    return {};
  } catch (const core::CollectiveError&) {
    give_up();
    throw;
  } catch (const core::PeerError&) {
    give_up();
    throw;
  } catch (const std::exception& error) {
    std::string problem = problem_of(error);
    give_up();
    return problem;
  }
}

// After any part of a capture; twice does no harm.
void StepGraph::give_up() noexcept {
  drop();
  collectives_.end_capture();
  try {
    config_.restore();
  } catch (const std::exception&) {  // the cause is on its way already
  }
}

void StepGraph::drop() noexcept {
  engine_.drop();
  collectives_.dropped();
  captured_ = false;
}

void StepGraph::replay() {
  const ranges::ScopedRange range(ranges::Phase::kReplay);
  engine_.replay();
  collectives_.replayed(config_.current_stream());
  ++use_.replayed_steps;
}

}  // namespace sidestream::launch
