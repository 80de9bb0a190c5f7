#include "profiling/trace/nsys_processes.hpp"

#include <algorithm>

namespace sidestream::trace {

std::size_t NsysProcesses::add(std::uint32_t process, int device) {
  const std::size_t index = timelines_.size();
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
  constexpr int kNoDevice = -1;
  const auto found = of_process_.find(process);
  if (found != of_process_.end()) return found->second;
  add(process, kNoDevice);
  return of_process_[process];
}

std::vector<RankTimeline> NsysProcesses::take(const std::map<std::uint32_t, int>& mpi_ranks) {
  const bool by_mpi = !mpi_ranks.empty() && of_device_.size() == of_process_.size() &&
                      std::all_of(of_process_.begin(), of_process_.end(),
                                  [&](const auto& one) { return mpi_ranks.contains(one.first); });
  int next = 0;
  std::vector<RankTimeline> ordered;
  for (const auto& [key, index] : of_device_) {
    RankTimeline& timeline = timelines_[index];
    timeline.info.rank = by_mpi ? mpi_ranks.at(key.first) : next++;
    ordered.push_back(std::move(timeline));
  }
  return ordered;
}

}  // namespace sidestream::trace
