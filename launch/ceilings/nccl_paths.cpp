#include "launch/ceilings/nccl_paths.hpp"

#include <algorithm>

namespace sidestream::launch {
namespace {

bool copies_are_faster(const NcclPaths& measured, Collective collective, int ranks) {
  const auto of_ranks = measured.find(std::string(name_of(collective)));
  if (of_ranks == measured.end()) return false;
  const auto rates = of_ranks->second.find(ranks);
  return rates != of_ranks->second.end() &&
         rates->second.copy_engines_bytes_per_s > rates->second.kernels_bytes_per_s;
}

}  // namespace

comm::nccl::Tuning tuning_by_measurement(const comm::nccl::Tuning& asked, const NcclPaths& measured,
                                         std::span<const Collective> collectives, int ranks) {
  if (asked.is_tuned() || !asked.windows || collectives.empty()) return asked;
  const bool all = std::all_of(collectives.begin(), collectives.end(), [&](Collective collective) {
    return copies_are_faster(measured, collective, ranks);
  });
  comm::nccl::Tuning tuning = asked;
  if (all) tuning.cta_policy = comm::nccl::CtaPolicy::kZero;
  return tuning;
}

}  // namespace sidestream::launch
