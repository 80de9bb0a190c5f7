#include "profiling/analysis/device_counters.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "profiling/ranges/system_counters.hpp"

namespace sidestream::analysis {
namespace {

constexpr std::array<const char*, 4> kSeries = {ranges::kTensorActive, ranges::kSmsActive,
                                                ranges::kDramRead, ranges::kDramWritten};
using Member = std::optional<double> DeviceCounters::*;
constexpr std::array<Member, 4> kMembers = {&DeviceCounters::tensor_active,
                                            &DeviceCounters::sm_active, &DeviceCounters::dram_read,
                                            &DeviceCounters::dram_written};

struct Sum {
  double percent = 0;
  std::int64_t samples = 0;
};
using Sums = std::array<Sum, kSeries.size()>;

DeviceCounters means_of(const Sums& sums) {
  DeviceCounters means;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i].samples == 0) continue;
    means.samples = std::max(means.samples, sums[i].samples);
    means.*kMembers[i] = sums[i].percent / 100 / static_cast<double>(sums[i].samples);
  }
  return means;
}

// The samples of one file, to be added up between any two times.
class Samples {
 public:
  explicit Samples(const trace::RankTimeline& timeline) {
    const trace::NameId counter = timeline.names.find(ranges::kGpuCounters);
    if (counter == trace::kNoName) return;
    for (std::size_t i = 0; i < kSeries.size(); ++i) add(timeline, counter, i);
  }

  Sums within(const Interval& window) const {
    Sums sums;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const auto at = [&](std::int64_t time_ns) {
        const auto& times = times_ns_[i];
        return static_cast<std::size_t>(std::lower_bound(times.begin(), times.end(), time_ns) -
                                        times.begin());
      };
      const std::size_t first = at(window.start_ns), end = at(window.end_ns);
      if (first >= end) continue;
      sums[i] = {before_[i][end] - before_[i][first], static_cast<std::int64_t>(end - first)};
    }
    return sums;
  }

 private:
  void add(const trace::RankTimeline& timeline, trace::NameId counter, std::size_t series) {
    const trace::NameId name = timeline.names.find(kSeries[series]);
    if (name == trace::kNoName) return;
    std::vector<std::pair<std::int64_t, double>> readings;
    for (std::size_t i = 0; i < timeline.counters().size(); ++i) {
      const trace::CounterReading& one = timeline.counters()[i];
      if (one.counter == counter && one.series == name)
        readings.push_back({one.time_ns, one.value});
    }
    std::sort(readings.begin(), readings.end());
    before_[series].push_back(0);
    for (const auto& [time_ns, percent] : readings) {
      times_ns_[series].push_back(time_ns);
      before_[series].push_back(before_[series].back() + percent);
    }
  }

  std::array<std::vector<std::int64_t>, kSeries.size()> times_ns_;
  std::array<std::vector<double>, kSeries.size()> before_;  // the sum of those before each
};

void add(const Sums& some, Sums& sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i].percent += some[i].percent;
    sums[i].samples += some[i].samples;
  }
}

std::optional<double> over(double part, double whole) {
  return whole > 0 ? std::optional(part / whole) : std::nullopt;
}

}  // namespace

std::optional<double> DeviceCounters::tensor_core_share() const {
  return tensor_active && sm_active ? over(*tensor_active, *sm_active) : std::nullopt;
}

std::optional<double> DeviceCounterTable::tensor_core_share() const {
  double tensor = 0, active = 0;
  for (const auto& [rank, one] : of_ranks) {
    if (!one.tensor_active || !one.sm_active) continue;
    tensor += *one.tensor_active * static_cast<double>(one.samples);
    active += *one.sm_active * static_cast<double>(one.samples);
  }
  return over(tensor, active);
}

DeviceCounterTable device_counters(const std::vector<RankView>& ranks) {
  DeviceCounterTable table;
  std::map<int, Sums> of_ranks;
  std::vector<Samples> samples;
  for (const RankView& rank : ranks) {
    samples.emplace_back(*rank.timeline);
    std::vector<DeviceCounters>& steps = table.of_steps.emplace_back();
    for (const StepRow& step : rank.steps)
      steps.push_back(means_of(samples.back().within(step.window)));
  }
  visit_plain_steps(ranks, [&](std::size_t file, const StepRow& step) {
    add(samples[file].within(step.window), of_ranks[step.rank]);
  });
  for (const auto& [rank, sums] : of_ranks) {
    const DeviceCounters means = means_of(sums);
    if (means.samples > 0) table.of_ranks[rank] = means;
  }
  return table;
}

}  // namespace sidestream::analysis
