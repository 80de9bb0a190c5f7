// How the steps of a run used a CUDA graph: for run.json and the log.
#pragma once

#include <cstdint>

namespace sidestream::launch {

struct GraphUse {
  std::int64_t captures = 0;  // more than one: gradients came to lie elsewhere
  double capture_s = 0;       // all of them, the agreement of the ranks included
  std::int64_t replayed_steps = 0;
  std::int64_t eager_steps = 0;
};

}  // namespace sidestream::launch
