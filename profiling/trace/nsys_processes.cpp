#include "profiling/trace/nsys_processes.hpp"

#include <set>

#include "core/base/error.hpp"
#include "profiling/ranges/phases.hpp"

namespace sidestream::trace {

std::size_t NsysProcesses::add(std::uint32_t process, int device) {
  constexpr std::size_t kMostTimelines = 1024;
  const std::size_t index = timelines_.size();
  if (index == kMostTimelines)
    throw core::DataError("more than " + std::to_string(kMostTimelines) +
                          " devices and processes in one export: it is damaged");
  timelines_.emplace_back();
  of_device_[{process, device}] = index;
  of_process_[process].push_back(index);
  return index;
}

RankTimeline& NsysProcesses::of_device(std::uint32_t process, int device) {
  const auto found = of_device_.find({process, device});
  return timelines_[found == of_device_.end() ? add(process, device) : found->second];
}

const std::vector<std::size_t>& NsysProcesses::of_process(std::uint32_t process) {
  const auto found = of_process_.find(process);
  if (found != of_process_.end()) return found->second;
  add(process, kNoDevice);
  return of_process_[process];
}

std::vector<NsysProcesses::Device> NsysProcesses::devices() const {
  std::vector<Device> devices;
  for (const auto& [key, index] : of_device_) {
    if (key.second != kNoDevice) devices.push_back({key.first, key.second, index});
  }
  return devices;
}

namespace {

// A rank computes on a device, or has steps or phases: a process that only asked the driver for the
// number of devices is none.
bool is_rank(const RankTimeline& timeline) {
  std::vector<bool> ours(timeline.names.size(), false);
  for (const ranges::PhaseInfo& phase : ranges::kPhases)
    ours[timeline.names.find(phase.name)] = true;
  ours[kNoName] = false;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const Kind kind = timeline.kind(row);
    if (is_device_work(kind) || kind == Kind::kGraph) return true;
    if (kind != Kind::kHostRange) continue;
    if (ours[timeline.name_id(row)] || timeline.name(row).starts_with(ranges::kStepPrefix))
      return true;
  }
  return false;
}

}  // namespace

NsysProcesses::Ranks NsysProcesses::take(const std::map<std::uint32_t, int>& mpi_ranks) {
  std::vector<std::pair<std::uint32_t, std::size_t>> all, ranks;  // process, timeline
  for (const auto& [key, index] : of_device_) {
    all.emplace_back(key.first, index);
    if (is_rank(timelines_[index])) ranks.push_back(all.back());
  }
  Ranks taken;
  if (ranks.empty())
    ranks = std::move(all);
  else
    taken.helpers = static_cast<int>(all.size() - ranks.size());
  std::set<std::uint32_t> processes;
  taken.known = !mpi_ranks.empty();
  for (const auto& [process, index] : ranks) {
    const bool one_device = processes.insert(process).second;
    taken.known = taken.known && one_device && mpi_ranks.contains(process);
  }
  for (const auto& [process, index] : ranks) {
    timelines_[index].info.rank =
        taken.known ? mpi_ranks.at(process) : static_cast<int>(taken.timelines.size());
    taken.timelines.push_back(std::move(timelines_[index]));
  }
  return taken;
}

}  // namespace sidestream::trace
