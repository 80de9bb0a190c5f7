#include "launch/ceilings/ceilings.hpp"
#include "launch/ceilings/collective_rate.hpp"

namespace sidestream::launch {

// A ceiling is what was reached once, not an average over a busy machine.
double measure_link(comm::Communicator& communicator, double seconds) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  CollectiveRate rate = measure_collective(communicator, {.collective = Collective::kAllReduce},
                                           kBytes, {.seconds = seconds});
  rate.seconds = rate.least_seconds;
  return rate.bus_bytes_per_s();
}

}  // namespace sidestream::launch
