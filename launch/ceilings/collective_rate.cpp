#include "launch/ceilings/collective_rate.hpp"

#include <algorithm>

namespace sidestream::launch {
namespace {

// In a row: what leaving a barrier one after the other adds is small beside this.
constexpr double kRow_s = 5e-3;
constexpr double kLongestRow = 64;

// Of the slowest rank, so that all ranks make rows of one length; by the shortest of a few, so that
// one that stalls does not make rows of one.
int operations_in_a_row(comm::Communicator& communicator, CollectiveTrial& trial) {
  constexpr int kTries = 3;
  trial.run(1);  // page faults, connections
  double least_s = kRow_s;
  Repetitions tries(communicator, {.repeats = kTries});
  while (tries.go_on()) least_s = std::min(least_s, tries.slowest_of({trial.run(1)}).front());
  return static_cast<int>(std::clamp(kRow_s / least_s, 1.0, kLongestRow));
}

}  // namespace

double CollectiveRate::algorithm_bytes_per_s() const {
  return seconds > 0 ? static_cast<double>(bytes) / seconds : 0;
}

double CollectiveRate::bus_bytes_per_s() const {
  const double ways = collective == Collective::kAllReduce ? 2 : 1;
  return ways * (ranks - 1) / ranks * algorithm_bytes_per_s();
}

CollectiveRate measure_collective(comm::Communicator& communicator, const CollectiveKind& kind,
                                  std::size_t bytes, const RepeatRule& rule) {
  CollectiveTrial trial(communicator, kind, bytes);
  CollectiveRate rate{
      .bytes = trial.bytes(), .ranks = communicator.size(), .collective = kind.collective};
  const int row = operations_in_a_row(communicator, trial);
  double sum_s = 0;
  Repetitions repetitions(communicator, rule);
  while (repetitions.go_on()) {
    const int operations = repetitions.next(row);
    const double slowest_s = repetitions.slowest_of({trial.run(operations)}, operations).front();
    sum_s += slowest_s * operations;
    const bool first = rate.least_seconds == 0;
    rate.least_seconds = first ? slowest_s : std::min(rate.least_seconds, slowest_s);
  }
  rate.repeats = repetitions.done();
  if (rate.repeats > 0) rate.seconds = sum_s / rate.repeats;
  rate.stopped = repetitions.stopped();
  return rate;
}

}  // namespace sidestream::launch
