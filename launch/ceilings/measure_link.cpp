#include "launch/ceilings/ceilings.hpp"
#include "launch/ceilings/collective_rate.hpp"

namespace sidestream::launch {

double measure_link(comm::Communicator& communicator, double seconds) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  return measure_collective(communicator, Collective::kAllReduce, kBytes, seconds)
      .bus_bytes_per_s();
}

}  // namespace sidestream::launch
