// What a run does about losses and gradients that are not finite, or far from those before.
#pragma once

#include <cstdint>

namespace sidestream::launch {

enum class AnomalyPolicy {
  kOff,       // nobody looks
  kWarn,      // said and written down
  kStop,      // the run ends with exit code 5, and saves nothing from that step on
  kSkip,      // the update is left out, the run goes on with the next batch
  kRollback,  // back to the newest checkpoint, and on with the batches that come next
};

struct NumericsOptions {
  AnomalyPolicy nan_policy = AnomalyPolicy::kStop;
  AnomalyPolicy spike_policy = AnomalyPolicy::kWarn;
  double spike_zscore = 8;             // standard deviations above the last 128 steps
  std::int64_t max_skipped_steps = 5;  // in a row, or rollbacks without a new checkpoint
  std::int64_t drift_every = 1000;     // steps between comparisons of the replicas; 0: never

  // Whether an update may be left out.
  bool drops_updates() const noexcept {
    const auto drops = [](AnomalyPolicy policy) {
      return policy == AnomalyPolicy::kSkip || policy == AnomalyPolicy::kRollback;
    };
    return drops(nan_policy) || drops(spike_policy);
  }
};

}  // namespace sidestream::launch
