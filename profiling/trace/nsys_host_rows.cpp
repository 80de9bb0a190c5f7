#include "profiling/trace/nsys_host_rows.hpp"

#include <algorithm>
#include <string>

namespace sidestream::trace {

NsysHostRows::Launches::Launches(NsysProcesses& processes,
                                 const std::vector<std::size_t>& timelines) {
  for (std::size_t place = 0; place < timelines.size(); ++place) {
    const RankTimeline& timeline = processes[timelines[place]];
    for (std::size_t row = 0; row < timeline.size(); ++row) {
      const auto detail = timeline.device(row);
      if (detail && detail->correlation != 0)
        launches_.push_back({detail->correlation, static_cast<int>(place)});
    }
  }
  std::sort(launches_.begin(), launches_.end(),
            [](const Launch& a, const Launch& b) { return a.correlation < b.correlation; });
}

int NsysHostRows::Launches::find(std::uint64_t correlation) {
  const auto is_at = [&](std::size_t at) {
    return at < launches_.size() && launches_[at].correlation == correlation;
  };
  if (!is_at(last_)) {
    const bool between = last_ + 1 < launches_.size() &&
                         launches_[last_].correlation < correlation &&
                         correlation <= launches_[last_ + 1].correlation;
    if (between && !is_at(last_ + 1)) return kEverywhere;
    const auto found = std::lower_bound(
        launches_.begin(), launches_.end(), correlation,
        [](const Launch& one, std::uint64_t wanted) { return one.correlation < wanted; });
    const auto at = static_cast<std::size_t>(found - launches_.begin());
    if (!is_at(at)) return kEverywhere;
    last_ = at;
  }
  return launches_[last_].place;
}

NsysHostRows::Thread& NsysHostRows::thread_of(const HostRow& row) {
  const ThreadKey key{row.lane == 0 ? row.global_tid : NsysProcesses::process_of(row.global_tid),
                      row.lane};
  if (last_ != nullptr && last_key_ == key) return *last_;
  const auto [found, is_new] = threads_.try_emplace(key);
  last_ = &found->second;
  last_key_ = key;
  if (is_new) find_tracks(row, *last_);
  return *last_;
}

void NsysHostRows::find_tracks(const HostRow& row, Thread& thread) {
  const std::uint32_t process = NsysProcesses::process_of(row.global_tid);
  const std::string name = row.lane == 0 ? std::to_string(NsysProcesses::thread_of(row.global_tid))
                                         : "in flight " + std::to_string(row.lane);
  thread.timelines = processes_.of_process(process);
  for (const std::size_t index : thread.timelines) {
    const std::uint32_t track = processes_[index].track(std::to_string(process), name);
    if (row.lane > 0) processes_[index].tracks()[track].name = name;
    thread.tracks.push_back(track);
  }
  if (thread.timelines.size() > 1)
    thread.launches = &launches_.try_emplace(process, processes_, thread.timelines).first->second;
}

namespace {

std::uint32_t detail_of(const HostRow& row, RankTimeline& timeline) {
  if (row.payload) {
    HostDetail detail;
    detail.collective =
        timeline.add_detail(CollectiveDetail{.name = timeline.names.intern(row.name),
                                             .bytes = row.payload->bytes,
                                             .bucket = row.payload->bucket,
                                             .sequence = row.payload->sequence});
    return timeline.add_detail(detail);
  }
  return row.correlation != 0 ? timeline.add_correlation(row.correlation) : kNone;
}

}  // namespace

void NsysHostRows::add_at(const HostRow& row, const Thread& thread, std::size_t place) {
  RankTimeline& timeline = processes_[thread.timelines[place]];
  timeline.add({.kind = row.kind,
                .name = row.name,
                .start_ns = row.start_ns,
                .duration_ns = row.duration_ns,
                .track = thread.tracks[place]},
               detail_of(row, timeline));
}

void NsysHostRows::add(HostRow row) {
  Thread& thread = thread_of(row);
  int place = kEverywhere;
  if (row.kind == Kind::kRuntime && thread.launches != nullptr) {
    const int launched = thread.launches->find(row.correlation);
    if (launched != kEverywhere)
      thread.place = launched;
    else
      row.correlation = 0;
    place = thread.place;
  }
  if (place != kEverywhere) return add_at(row, thread, static_cast<std::size_t>(place));
  for (std::size_t i = 0; i < thread.timelines.size(); ++i) add_at(row, thread, i);
}

void NsysHostRows::leave_out(const HostRow& row, const TimeFault& fault, const char* table) {
  const std::uint32_t process = NsysProcesses::process_of(row.global_tid);
  processes_[processes_.of_process(process).front()].skip(fault.reason);
  senseless_.add(fault, table, row.name);
}

}  // namespace sidestream::trace
