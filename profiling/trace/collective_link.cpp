#include "profiling/trace/collective_link.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "profiling/trace/kind.hpp"
#include "profiling/trace/launch_calls.hpp"

namespace sidestream::trace {
namespace {

// Letters and digits in lower case: the kernel's ReduceScatter and the range's reduce_scatter.
std::string plain(std::string_view name) {
  std::string text;
  for (const char letter : name) {
    if (letter >= 'A' && letter <= 'Z') text += static_cast<char>(letter - 'A' + 'a');
    if ((letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9')) text += letter;
  }
  return text;
}

bool is_graph_launch(std::string_view call) {
  return call.find("GraphLaunch") != std::string_view::npos;
}

std::vector<std::size_t> kernels_without_detail(const RankTimeline& timeline) {
  std::vector<std::size_t> kernels;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) == Kind::kKernel && is_collective_kernel(timeline.name(row)) &&
        timeline.correlation(row) != 0 && timeline.collective(row) == nullptr)
      kernels.push_back(row);
  }
  return kernels;
}

// By start.
std::vector<std::size_t> ranges_with_payload(const RankTimeline& timeline) {
  std::vector<std::size_t> ranges;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) != Kind::kHostRange) continue;
    const CollectiveDetail* detail = timeline.collective(row);
    if (detail != nullptr && detail->bytes >= 0 && detail->sequence >= 0) ranges.push_back(row);
  }
  std::stable_sort(ranges.begin(), ranges.end(), [&](std::size_t a, std::size_t b) {
    return timeline.start_ns(a) < timeline.start_ns(b);
  });
  return ranges;
}

// The newest that is open then; the end of the list: none.
std::vector<std::size_t>::const_iterator open_at(const RankTimeline& timeline,
                                                 const std::vector<std::size_t>& ranges,
                                                 std::int64_t launch_ns, std::string_view kernel) {
  const auto after = std::upper_bound(
      ranges.begin(), ranges.end(), launch_ns,
      [&](std::int64_t time_ns, std::size_t row) { return time_ns < timeline.start_ns(row); });
  // The range of this launch is the newest; only one of another thread can have come between.
  constexpr int kLooked = 8;
  auto at = after;
  for (int looked = 0; at != ranges.begin() && looked < kLooked; ++looked) {
    --at;
    if (timeline.end_ns(*at) >= launch_ns &&
        plain(kernel).find(plain(timeline.name(*at))) != std::string::npos)
      return at;
  }
  return ranges.end();
}

}  // namespace

void link_collectives(RankTimeline& timeline) {
  const std::vector<std::size_t> kernels = kernels_without_detail(timeline);
  if (kernels.empty()) return;
  const std::vector<std::size_t> ranges = ranges_with_payload(timeline);
  if (ranges.empty()) return;
  const auto launches = launch_calls(timeline);
  for (const std::size_t kernel : kernels) {
    const auto launch = launches.find(timeline.correlation(kernel));
    if (launch == launches.end() || is_graph_launch(timeline.name(launch->second))) continue;
    const auto range =
        open_at(timeline, ranges, timeline.start_ns(launch->second), timeline.name(kernel));
    if (range == ranges.end()) continue;
    const CollectiveDetail& told = *timeline.collective(*range);
    timeline.add_collective(kernel, {.bytes = told.bytes,
                                     .bucket = told.bucket,
                                     .sequence = told.sequence,
                                     .group_size = told.group_size});
  }
}

}  // namespace sidestream::trace
