#include "profiling/analysis/idle_causes.hpp"

namespace sidestream::analysis {
namespace {

// Length of what `cause` explains; `left` keeps the rest.
std::int64_t take(IntervalSet& left, const IntervalSet& cause) {
  IntervalSet rest = left - cause;
  const std::int64_t taken = left.length_ns() - rest.length_ns();
  left = std::move(rest);
  return taken;
}

}  // namespace

IdleCauses idle_causes(const IntervalSet& idle, const HostActivity& host,
                       const IntervalSet& launch_gaps) {
  IntervalSet left = idle;
  IdleCauses causes;
  causes.data_ns = take(left, host.data);
  causes.comm_ns = take(left, host.communication);
  causes.lock_ns = take(left, host.locks);
  causes.sync_ns = take(left, host.sync);
  causes.host_ns = take(left, host.active) + take(left, launch_gaps);
  causes.other_ns = left.length_ns();
  return causes;
}

}  // namespace sidestream::analysis
