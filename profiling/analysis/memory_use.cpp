#include "profiling/analysis/memory_use.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "profiling/ranges/phases.hpp"

namespace sidestream::analysis {
namespace {

using trace::RankTimeline;

constexpr std::size_t kCurvePoints = 1000;

// Phases of a rank by time. Backward runs on a thread of its own, so that the thread says nothing.
class Phases {
 public:
  explicit Phases(const RankTimeline& timeline) {
    std::map<trace::NameId, std::string> wanted;
    for (const ranges::PhaseInfo& phase : ranges::kPhases) {
      const trace::NameId id = timeline.names.find(phase.name);
      if (id != trace::kNoName && phase.category != ranges::Category::kCommunication)
        wanted[id] = phase.name;
    }
    for (std::size_t row = 0; row < timeline.size(); ++row) {
      if (timeline.kind(row) != trace::Kind::kHostRange) continue;
      const auto name = wanted.find(timeline.name_id(row));
      if (name != wanted.end())
        ranges_.push_back({{timeline.start_ns(row), timeline.end_ns(row)}, name->second});
    }
    std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
      return a.interval.start_ns < b.interval.start_ns;
    });
  }

  // The phase that began last among those that are open; times have to rise from call to call.
  std::string at(std::int64_t time_ns) {
    for (; next_ < ranges_.size() && ranges_[next_].interval.start_ns <= time_ns; ++next_)
      open_.push_back(next_);
    std::erase_if(open_, [&](std::size_t one) { return ranges_[one].interval.end_ns <= time_ns; });
    return open_.empty() ? "other" : ranges_[open_.back()].name;
  }

 private:
  struct Range {
    Interval interval;
    std::string name;
  };
  std::vector<Range> ranges_;
  std::size_t next_ = 0;
  std::vector<std::size_t> open_;
};

struct Block {
  std::int64_t bytes = 0;
  std::string category;
};

// Allocations and releases of one device in the order of time.
class Replay {
 public:
  Replay(const RankTimeline& timeline, int device) {
    use_.timeline = &timeline;
    use_.rank = timeline.info.rank;
    use_.device = device;
  }

  void add(std::int64_t time_ns, const trace::MemoryDetail& detail, const std::string& phase) {
    if (detail.bytes > 0)
      allocate(detail, phase);
    else
      release(detail);
    const std::int64_t allocated =
        detail.allocated_bytes >= 0 ? detail.allocated_bytes : std::max<std::int64_t>(0, known_);
    // LibTorch reserves nothing of the host's memory, and writes a 0.
    const std::int64_t reserved =
        use_.device < 0 && detail.reserved_bytes == 0 ? -1 : detail.reserved_bytes;
    use_.curve.push_back({time_ns, allocated, reserved});
    use_.peak_reserved_bytes = std::max(use_.peak_reserved_bytes, reserved);
    if (use_.curve.size() > 1 && allocated <= use_.peak_allocated_bytes) return;
    use_.peak_allocated_bytes = allocated;
    use_.peak_time_ns = time_ns;
    at_peak_ = live_;
  }

  MemoryUse take() {
    std::int64_t explained = 0;
    for (const auto& [name, bytes] : at_peak_) {
      categories_[name].bytes_at_peak = bytes;
      explained += bytes;
    }
    if (use_.peak_allocated_bytes > explained)
      categories_["before the trace"].bytes_at_peak = use_.peak_allocated_bytes - explained;
    for (auto& [name, category] : categories_) {
      category.name = name;
      use_.categories.push_back(category);
    }
    std::stable_sort(use_.categories.begin(), use_.categories.end(),
                     [](const MemoryCategory& a, const MemoryCategory& b) {
                       return a.bytes_at_peak > b.bytes_at_peak;
                     });
    thin_out();
    return std::move(use_);
  }

 private:
  void allocate(const trace::MemoryDetail& detail, const std::string& phase) {
    ++use_.allocations;
    MemoryCategory& category = categories_[phase];
    ++category.allocations;
    category.allocated_bytes += detail.bytes;
    live_[phase] += detail.bytes;
    known_ += detail.bytes;
    blocks_[detail.address] = {detail.bytes, phase};
  }

  void release(const trace::MemoryDetail& detail) {
    ++use_.releases;
    known_ += detail.bytes;
    const auto block = blocks_.find(detail.address);
    if (block == blocks_.end()) return;  // taken before the trace began
    live_[block->second.category] -= block->second.bytes;
    blocks_.erase(block);
  }

  void thin_out() {
    const std::size_t apart = (use_.curve.size() + kCurvePoints - 1) / kCurvePoints;
    if (apart <= 1) return;
    std::vector<MemoryPoint> thin;
    for (std::size_t at = 0; at < use_.curve.size(); at += apart) {
      const auto first = use_.curve.begin() + static_cast<std::ptrdiff_t>(at);
      const auto last =
          use_.curve.begin() + static_cast<std::ptrdiff_t>(std::min(at + apart, use_.curve.size()));
      thin.push_back(*std::max_element(first, last, [](const auto& a, const auto& b) {
        return a.allocated_bytes < b.allocated_bytes;
      }));
    }
    use_.curve = std::move(thin);
  }

  MemoryUse use_;
  std::map<std::string, MemoryCategory> categories_;
  std::map<std::string, std::int64_t> live_, at_peak_;
  std::unordered_map<std::uint64_t, Block> blocks_;
  std::int64_t known_ = 0;
};

void add_rank(const RankTimeline& timeline, std::vector<MemoryUse>& all) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.memory(row) != nullptr) rows.push_back(row);
  }
  if (rows.empty()) return;
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return timeline.start_ns(a) < timeline.start_ns(b);
  });
  Phases phases(timeline);
  std::map<int, Replay> replays;
  for (const std::size_t row : rows) {
    const trace::MemoryDetail& detail = *timeline.memory(row);
    const auto place = replays.try_emplace(detail.device, timeline, detail.device).first;
    place->second.add(timeline.start_ns(row), detail, phases.at(timeline.start_ns(row)));
  }
  for (auto& [device, replay] : replays) all.push_back(replay.take());
}

}  // namespace

std::vector<MemoryUse> memory_use(const std::vector<RankView>& ranks) {
  std::vector<MemoryUse> all;
  for (const RankView& rank : ranks) add_rank(*rank.timeline, all);
  return all;
}

}  // namespace sidestream::analysis
