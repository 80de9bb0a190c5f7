#include "launch/doctor/checks.hpp"

namespace sidestream::launch::doctor {

std::optional<Finding> check_ceilings(const JobFacts& job) {
  if (job.ranks.front().gpu.device.usable()) return std::nullopt;  // datasheets have its peak
  if (job.has_ceilings)
    return Finding{.name = "ceilings", .found = "this processor's ceilings have been measured"};
  return Finding{.name = "ceilings",
                 .level = Level::kNote,
                 .found = "nobody has measured what this processor can do: MFU will be missing",
                 .expected = "a measurement of this machine",
                 .remedy = "sidestream bench ceilings (some seconds, once)"};
}

}  // namespace sidestream::launch::doctor
