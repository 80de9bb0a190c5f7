#include "launch/ceilings/nccl_paths.hpp"

namespace sidestream::launch {

comm::nccl::Tuning tuning_by_measurement(const comm::nccl::Tuning& asked,
                                         const GatherPaths& measured, const GatheringRanks& ranks) {
  if (asked.is_tuned() || !asked.windows) return asked;
  // Copies by NCCL's copy engines have been measured outside of graphs, and captured on no GPU: a
  // run gets them there by --nccl-ctas none, not by a measurement that is of something else.
  if (ranks.captures) return asked;
  const auto rates = measured.find(ranks.count);
  if (rates == measured.end()) return asked;
  comm::nccl::Tuning tuning = asked;
  if (rates->second.copy_engines_bytes_per_s >= rates->second.kernels_bytes_per_s)
    tuning.cta_policy = comm::nccl::CtaPolicy::kZero;
  return tuning;
}

}  // namespace sidestream::launch
