#include "launch/ceilings/ceilings.hpp"

namespace sidestream::launch {

// A ceiling is what was reached once, not an average over a busy machine.
CollectiveRate measure_link(comm::Communicator& communicator, const RepeatRule& rule) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  CollectiveRate rate =
      measure_collective(communicator, {.collective = Collective::kAllReduce}, kBytes, rule);
  rate.seconds = rate.least_seconds;
  return rate;
}

}  // namespace sidestream::launch
