#include "launch/ceilings/best_rate.hpp"

#include <algorithm>
#include <chrono>

#include "launch/ceilings/seconds_since.hpp"

namespace sidestream::launch {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

double best_rate(double budget_s, double work, const std::function<void()>& call) {
  call();  // page faults, libraries load, clocks rise
  double best = 0;
  for (const auto start = Clock::now(); best == 0 || seconds_since(start) < budget_s;) {
    const auto begin = Clock::now();
    call();
    best = std::max(best, work / seconds_since(begin));
  }
  return best;
}

ProductTensors::ProductTensors(const ProductExtents& extents, const torch::TensorOptions& options)
    : left(torch::randn({extents.rows, extents.inner}, options)),
      right(torch::randn({extents.inner, extents.columns}, options)),
      result(torch::empty({extents.rows, extents.columns}, options)) {}

}  // namespace sidestream::launch
