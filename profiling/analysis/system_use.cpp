#include "profiling/analysis/system_use.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>

#include "profiling/ranges/system_counters.hpp"

namespace sidestream::analysis {
namespace {

using Series = std::pair<std::string_view, std::string_view>;  // counter, series

struct Weighted {
  double sum = 0, weight_ns = 0;
  double mean() const { return sum / weight_ns; }
};

// Of all ranks; texts are those of the timelines.
class Means {
 public:
  void add(const RankView& rank) {
    const IntervalSet steps = rank.counted_windows();
    const trace::RankTimeline& timeline = *rank.timeline;
    std::map<trace::NameId, std::pair<std::int64_t, std::int64_t>> times;  // counter: before, now
    for (std::size_t i = 0; i < timeline.counters().size(); ++i) {
      const trace::CounterReading& one = timeline.counters()[i];
      const auto [place, is_first] = times.try_emplace(one.counter, one.time_ns, one.time_ns);
      auto& [before, now] = place->second;
      if (one.time_ns != now) before = std::exchange(now, one.time_ns);
      if (is_first || before >= now) continue;
      const std::int64_t inside_ns = steps.length_within_ns({before, now});
      if (inside_ns <= 0) continue;
      Weighted& mean = means_[{timeline.names[one.counter], timeline.names[one.series]}];
      mean.sum += one.value * static_cast<double>(inside_ns);
      mean.weight_ns += static_cast<double>(inside_ns);
    }
    samples_ += moments_inside(timeline, steps);
  }

  std::size_t samples() const { return samples_; }
  std::optional<double> of(std::string_view counter, std::string_view series, double scale) const {
    const auto found = means_.find({counter, series});
    return found == means_.end() ? std::nullopt : std::optional(found->second.mean() * scale);
  }
  const std::map<Series, Weighted>& all() const { return means_; }

 private:
  static std::size_t moments_inside(const trace::RankTimeline& timeline, const IntervalSet& steps) {
    std::size_t count = 0;
    std::int64_t last_ns = INT64_MIN;
    for (std::size_t i = 0; i < timeline.counters().size(); ++i) {
      const trace::CounterReading& one = timeline.counters()[i];
      if (one.time_ns == last_ns || timeline.names[one.counter] != ranges::kProcessCpu) continue;
      last_ns = one.time_ns;
      count += steps.length_within_ns({one.time_ns, one.time_ns + 1}) > 0 ? 1 : 0;
    }
    return count;
  }

  std::map<Series, Weighted> means_;
  std::size_t samples_ = 0;
};

void find_busiest_disk(const Means& means, SystemUse& use) {
  for (const auto& [series, mean] : means.all()) {
    if (series.first != ranges::kDiskBusy) continue;
    const double busy = mean.mean() / 100;
    if (use.disk_busy && *use.disk_busy >= busy) continue;
    use.disk_busy = busy;
    use.disk = series.second;
  }
}

struct EnergyUse {
  double joules = 0;
  double tokens = 0;
};

// From the first step of the file without a tag to the last; tags for an evaluation or a checkpoint
// do not count, whose energy is a part of training.
Interval measured_span(const RankView& rank) {
  Interval span{INT64_MAX, INT64_MIN};
  for (const StepRow& step : rank.steps) {
    if (step.is_singular() || step.has_tag(StepRow::kFirst)) continue;
    span.start_ns = std::min(span.start_ns, step.window.start_ns);
    span.end_ns = std::max(span.end_ns, step.window.end_ns);
  }
  return span;
}

double steps_within(const RankView& rank, Interval span) {
  double count = 0;
  for (const StepRow& step : rank.steps) {
    const Interval inside{std::max(span.start_ns, step.window.start_ns),
                          std::min(span.end_ns, step.window.end_ns)};
    if (step.step && inside.start_ns < inside.end_ns)
      count +=
          static_cast<double>(inside.length_ns()) / static_cast<double>(step.window.length_ns());
  }
  return count;
}

// Between the first and the last reading inside the steps.
void add_energy(const RankView& rank, EnergyUse& use) {
  const trace::RankTimeline& timeline = *rank.timeline;
  const Interval span = measured_span(rank);
  const trace::CounterReading *first = nullptr, *last = nullptr;
  for (std::size_t i = 0; i < timeline.counters().size(); ++i) {
    const trace::CounterReading& one = timeline.counters()[i];
    if (timeline.names[one.counter] != ranges::kGpuEnergy) continue;
    if (one.time_ns < span.start_ns || one.time_ns > span.end_ns) continue;
    if (first == nullptr || one.time_ns < first->time_ns) first = &one;
    if (last == nullptr || one.time_ns > last->time_ns) last = &one;
  }
  if (first == nullptr || first == last) return;
  use.joules += last->value - first->value;
  use.tokens +=
      timeline.info.figures.tokens_per_step * steps_within(rank, {first->time_ns, last->time_ns});
}

// Of all GPUs together, for a token of the whole job: nothing while the energy of one is missing.
std::optional<double> joules_per_token(const std::vector<RankView>& ranks) {
  std::map<int, EnergyUse> of_rank;
  int world_size = 0;
  for (const RankView& rank : ranks) {
    world_size = std::max(world_size, rank.timeline->info.world_size);
    add_energy(rank, of_rank[rank.timeline->info.rank]);
  }
  double sum = 0;
  for (const auto& [rank, use] : of_rank) {
    if (use.tokens <= 0 || use.joules <= 0) return std::nullopt;
    sum += use.joules / use.tokens;
  }
  if (of_rank.empty() || static_cast<int>(of_rank.size()) < world_size) return std::nullopt;
  return sum;
}

}  // namespace

SystemUse find_system_use(const std::vector<RankView>& ranks) {
  Means means;
  for (const RankView& rank : ranks) means.add(rank);
  SystemUse use{.samples = means.samples(),
                .process_cores = means.of(ranges::kProcessCpu, "running", 0.01),
                .process_cores_short = means.of(ranges::kProcessCpu, "waiting", 0.01),
                .machine_cpu = means.of(ranges::kMachineCpu, "busy", 0.01),
                .gpu_clock_mhz = means.of(ranges::kGpuClock, "core", 1),
                .gpu_held_down = means.of(ranges::kGpuHeldDown, ranges::kHeldDownByPowerOrHeat, 1),
                .joules_per_token = joules_per_token(ranks)};
  find_busiest_disk(means, use);
  return use;
}

}  // namespace sidestream::analysis
