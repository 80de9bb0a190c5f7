#include "profiling/analysis/idle_causes.hpp"

namespace sidestream::analysis {
namespace {

// Length of what `cause` explains; `left` keeps the rest.
template <typename Cause>
std::int64_t take(IntervalSet& left, const Cause& cause, Interval part) {
  IntervalSet rest = left - cause.within(part);
  const std::int64_t taken = left.length_ns() - rest.length_ns();
  left = std::move(rest);
  return taken;
}

IdleCauses causes_in(Interval part, const IntervalSet& busy, const HostActivity& host,
                     const LaunchGaps& launch_gaps) {
  IntervalSet left = IntervalSet({part}) - busy.within(part);
  IdleCauses causes;
  causes.data_ns = take(left, host.data, part);
  causes.comm_ns = take(left, host.communication, part);
  causes.lock_ns = take(left, host.locks, part);
  causes.sync_ns = take(left, host.sync, part);
  causes.after_sync_ns = take(left, host.after_sync, part);
  causes.sync_ns += causes.after_sync_ns;
  causes.host_ns = take(left, host.active, part) + take(left, launch_gaps, part);
  causes.other_ns = left.length_ns();
  return causes;
}

}  // namespace

IdleCauses& IdleCauses::operator+=(const IdleCauses& other) {
  data_ns += other.data_ns;
  host_ns += other.host_ns;
  sync_ns += other.sync_ns;
  comm_ns += other.comm_ns;
  lock_ns += other.lock_ns;
  other_ns += other.other_ns;
  after_sync_ns += other.after_sync_ns;
  return *this;
}

IdleCauses idle_causes(Interval window, const IntervalSet& busy, const HostActivity& host,
                       const LaunchGaps& launch_gaps, std::size_t intervals_at_once) {
  IdleCauses causes;
  for (const Interval part : busy.parts_of(window, intervals_at_once))
    causes += causes_in(part, busy, host, launch_gaps);
  return causes;
}

}  // namespace sidestream::analysis
