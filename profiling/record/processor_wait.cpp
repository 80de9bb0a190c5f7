#include "profiling/record/processor_wait.hpp"

#include <algorithm>

#include "profiling/record/clock.hpp"

namespace sidestream::record {

std::optional<double> processor_wait(const ThreadTable& before, const ThreadTable& after,
                                     std::int64_t elapsed_ns) {
  constexpr std::int64_t kOfTheTime = 4;
  std::optional<double> most;
  for (const auto& [id, now] : after) {
    const auto then = before.find(id);
    const ThreadTimes start = then == before.end() ? ThreadTimes{} : then->second;
    const std::int64_t wait_ns = now.wait_ns - start.wait_ns;
    const std::int64_t wanted_ns = now.run_ns - start.run_ns + wait_ns;
    if (wanted_ns <= 0 || wanted_ns * kOfTheTime < elapsed_ns) continue;
    most =
        std::max(most.value_or(0), static_cast<double>(wait_ns) / static_cast<double>(wanted_ns));
  }
  return most;
}

ProcessorWait::ProcessorWait() : begin_ns_(monotonic_ns()), before_(read_threads()) {}

std::optional<double> ProcessorWait::share() const {
  return processor_wait(before_, read_threads(), monotonic_ns() - begin_ns_);
}

}  // namespace sidestream::record
