// The losses of one run over its steps, as metrics.jsonl has them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiling/verify/recorded_run.hpp"

namespace sidestream::verify {

struct LossPoint {
  std::int64_t step = 0;
  double loss = 0;
};

struct LossCurve {
  std::string seed = {};  // empty: the configuration names none
  std::vector<LossPoint> training = {};
  std::vector<LossPoint> validation = {};  // of the evaluations
};

LossCurve loss_curve_of(const RecordedRun& run);

}  // namespace sidestream::verify
