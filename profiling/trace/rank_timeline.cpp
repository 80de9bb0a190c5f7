#include "profiling/trace/rank_timeline.hpp"

namespace sidestream::trace {
namespace {

bool has_device_detail(Kind kind) { return kind <= Kind::kDeviceSync; }
bool has_host_detail(Kind kind) {
  return kind == Kind::kOperator || kind == Kind::kHostRange || kind == Kind::kUnfinished;
}

}  // namespace

std::uint32_t RankTimeline::track(std::string_view process, std::string_view thread) {
  std::string key(process);
  key += '\n';
  key += thread;
  const auto [place, is_new] =
      track_of_key_.try_emplace(std::move(key), static_cast<std::uint32_t>(tracks_.size()));
  if (is_new) tracks_.push_back({std::string(process), std::string(thread), ""});
  return place->second;
}

const DeviceDetail* RankTimeline::device(std::size_t row) const {
  return has_device_detail(kind_[row]) && detail_[row] != kNone ? &device_[detail_[row]] : nullptr;
}

const HostDetail* RankTimeline::host(std::size_t row) const {
  return has_host_detail(kind_[row]) && detail_[row] != kNone ? &host_[detail_[row]] : nullptr;
}

const MemoryDetail* RankTimeline::memory(std::size_t row) const {
  return kind_[row] == Kind::kMemory && detail_[row] != kNone ? &memory_[detail_[row]] : nullptr;
}

const CollectiveDetail* RankTimeline::collective(std::size_t row) const {
  std::uint32_t index = kNone;
  if (const DeviceDetail* detail = device(row)) index = detail->collective;
  if (const HostDetail* detail = host(row)) index = detail->collective;
  return index == kNone ? nullptr : &collective_[index];
}

std::uint64_t RankTimeline::correlation(std::size_t row) const {
  if (const DeviceDetail* detail = device(row)) return detail->correlation;
  return kind_[row] == Kind::kRuntime && detail_[row] != kNone ? correlation_[detail_[row]] : 0;
}

}  // namespace sidestream::trace
