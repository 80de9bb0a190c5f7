// Makes planted faults happen in this process. A run without any pays one comparison a place.
//
//   FaultInjector faults(parse_faults("kill:rank=1,step=50"), {.rank = 1});
//   faults.pass(Point::kForward, 50);  // does not come back
//
// Thread-safe: a checkpoint is written by a thread of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "core/faults/fault.hpp"

namespace sidestream::faults {

struct Victim {
  int rank = 0;
  int attempt = 1;
  // The number of this start of a supervised run, from SIDESTREAM_ATTEMPT; 1 where nobody says.
  static int attempt_of_this_process();
};

class FaultInjector {
 public:
  FaultInjector() = default;  // nothing is planted
  FaultInjector(const std::vector<Fault>& faults, const Victim& victim);
  FaultInjector(const FaultInjector&) = delete;
  FaultInjector& operator=(const FaultInjector&) = delete;

  // What is planted here for this step happens: the process ends, stops, sleeps or throws. Throws
  // core::Error, std::bad_alloc, CheckpointError (disk-full).
  void pass(Point point, std::int64_t step);

  // What the loss of this step is multiplied with: 1 where nothing is planted.
  double loss_factor(std::int64_t step);
  // Whether the gradients of this step are to be infinite.
  bool makes_gradients_infinite(std::int64_t step) { return is_due(Kind::kInfGrad, step); }
  // Whether this rank makes a collective too many in this step.
  bool desynchronises(std::int64_t step) { return is_due(Kind::kDesync, step); }
  // Whether a bit of its weights is to be turned over before this step.
  bool flips_a_bit(std::int64_t step) { return is_due(Kind::kFlip, step); }

 private:
  struct Planted {
    Fault fault;
    std::int64_t times = 0;  // that it has happened
    std::int64_t last_step = -1;
  };
  bool is_due(Kind kind, std::int64_t step);
  std::vector<Fault> take(const std::function<bool(const Fault&)>& wanted, std::int64_t step);

  std::mutex mutex_;
  std::vector<Planted> planted_;  // of this rank and this start only
};

// Whether SIDESTREAM_FAULT_INJECTION is 1.
bool is_permitted();
// Faults are for tests and exercises: throws ConfigError unless SIDESTREAM_FAULT_INJECTION is 1.
void require_permission(const std::vector<Fault>& faults);

// Throws ConfigError for a fault of a rank that the job does not have.
void require_ranks(const std::vector<Fault>& faults, int world_size);

// Throws ConfigError for a fault of a step that the run never takes, or at a place before all
// steps.
void require_steps(const std::vector<Fault>& faults, std::int64_t last_step);

}  // namespace sidestream::faults
