#include "launch/ceilings/nccl_paths.hpp"

namespace sidestream::launch {

comm::nccl::Tuning tuning_by_measurement(const comm::nccl::Tuning& asked,
                                         const GatherPaths& measured, int ranks) {
  if (asked.is_tuned() || !asked.windows) return asked;
  const auto rates = measured.find(ranks);
  if (rates == measured.end()) return asked;
  comm::nccl::Tuning tuning = asked;
  if (rates->second.copy_engines_bytes_per_s >= rates->second.kernels_bytes_per_s)
    tuning.cta_policy = comm::nccl::CtaPolicy::kZero;
  return tuning;
}

}  // namespace sidestream::launch
