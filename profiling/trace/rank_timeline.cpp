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

std::optional<DeviceDetail> RankTimeline::device(std::size_t row) const {
  if (!has_device_detail(kind_[row]) || detail_[row] == kNone) return std::nullopt;
  const DeviceRow& one = device_[detail_[row]];
  return DeviceDetail{shapes_[one.shape], launched_by_[detail_[row]], one.collective, one.shape};
}

std::optional<HostDetail> RankTimeline::host(std::size_t row) const {
  if (!has_host_detail(kind_[row]) || detail_[row] == kNone) return std::nullopt;
  const HostRow& one = host_[detail_[row]];
  return HostDetail{texts_[one.texts], one.sequence, one.collective};
}

const MemoryDetail* RankTimeline::memory(std::size_t row) const {
  return kind_[row] == Kind::kMemory && detail_[row] != kNone ? &memory_[detail_[row]] : nullptr;
}

const CollectiveDetail* RankTimeline::collective(std::size_t row) const {
  if (detail_[row] == kNone) return nullptr;
  std::uint32_t index = kNone;
  if (has_device_detail(kind_[row])) index = device_[detail_[row]].collective;
  if (has_host_detail(kind_[row])) index = host_[detail_[row]].collective;
  return index == kNone ? nullptr : &collective_[index];
}

std::uint32_t RankTimeline::add_detail(const CollectiveDetail& detail) {
  constexpr std::int64_t kLargest = std::int64_t{1} << 50;
  constexpr std::int64_t kUnknown = CollectiveDetail{}.bytes;
  constexpr std::int32_t kMostRanks = 1 << 24;
  CollectiveDetail possible = detail;
  for (std::int64_t* size : {&possible.bytes, &possible.elements_in, &possible.elements_out}) {
    if (*size < 0 || *size >= kLargest) *size = kUnknown;
  }
  if (possible.group_size < 0 || possible.group_size > kMostRanks) possible.group_size = 0;
  return append(collective_, possible);
}

void RankTimeline::add_collective(std::size_t kernel_row, const CollectiveDetail& detail) {
  if (has_device_detail(kind_[kernel_row]) && detail_[kernel_row] != kNone)
    device_[detail_[kernel_row]].collective = add_detail(detail);
}

std::uint64_t RankTimeline::correlation(std::size_t row) const {
  if (detail_[row] == kNone) return 0;
  if (has_device_detail(kind_[row])) return launched_by_[detail_[row]];
  return kind_[row] == Kind::kRuntime ? correlation_[detail_[row]] : 0;
}

}  // namespace sidestream::trace
