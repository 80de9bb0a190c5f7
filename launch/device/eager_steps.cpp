#include "launch/device/eager_steps.hpp"

#include <algorithm>

namespace sidestream::launch {
namespace {

using faults::Fault;
using faults::Kind;

// Those that change what a step computes: a replay would not have them.
bool spoils_tensors(Kind kind) {
  return kind == Kind::kNan || kind == Kind::kSpike || kind == Kind::kInfGrad;
}

// A fault without a step may come at any.
bool may_happen(const Fault& fault, std::int64_t step) {
  const std::int64_t first = fault.step.value_or(step);
  return spoils_tensors(fault.kind) && step >= first &&
         (fault.steps == 0 || step < first + fault.steps);
}

}  // namespace

std::string why_eager(const ProfilePlan& plan, const std::vector<Fault>& faults,
                      std::int64_t step) {
  if (plan.part_of(step) != ProfilePlan::Part::kNothing) return "it is profiled";
  if (std::ranges::any_of(faults, [&](const Fault& fault) { return may_happen(fault, step); }))
    return "a fault is planted in its loss or gradients";
  return {};
}

}  // namespace sidestream::launch
