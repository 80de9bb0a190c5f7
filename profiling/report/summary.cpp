#include "profiling/report/summary.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "profiling/analysis/step_gaps.hpp"
#include "profiling/analysis/step_waiting.hpp"

namespace sidestream::report {

using analysis::RankView;
using analysis::StepRow;

double stepped_ns(const analysis::Analysis& all) {
  return static_cast<double>(all.operation_steps.length_ns);
}

std::optional<double> step_share(const analysis::Operation& one, double stepped_ns) {
  if (stepped_ns <= 0) return std::nullopt;
  return static_cast<double>(one.total_ns) / stepped_ns;
}

namespace {

// A step that two recordings of a rank share is one.
std::map<std::string, std::int64_t> left_out_steps(const std::vector<RankView>& ranks,
                                                   const std::vector<const StepRow*>& counted) {
  const std::set<const StepRow*> kept(counted.begin(), counted.end());
  std::map<std::string, std::int64_t> left_out;
  std::set<std::pair<int, std::int64_t>> seen;
  for (const RankView& rank : ranks) {
    for (const StepRow& step : rank.steps) {
      if (kept.contains(&step)) continue;
      const bool is_new = !step.step || seen.emplace(step.rank, *step.step).second;
      if (is_new) ++left_out[step.tags.front()];
    }
  }
  return left_out;
}

}  // namespace

MeanStep mean_step(const std::vector<RankView>& ranks) {
  const std::vector<const StepRow*> rows = analysis::plain_steps(ranks);
  MeanStep mean;
  mean.steps = static_cast<std::int64_t>(rows.size());
  mean.left_out = left_out_steps(ranks, rows);
  if (rows.empty()) return mean;
  for (const StepRow* row : rows) {
    mean.compute_ns += row->budget.compute_ns;
    mean.overlapped_comm_ns += row->budget.overlapped_comm_ns;
    mean.exposed_comm_ns += row->budget.exposed_comm_ns;
    mean.exposed_memcpy_ns += row->budget.exposed_memcpy_ns;
    mean.idle.data_ns += row->idle.data_ns;
    mean.idle.host_ns += row->idle.host_ns;
    mean.idle.sync_ns += row->idle.sync_ns;
    mean.idle.comm_ns += row->idle.comm_ns;
    mean.idle.lock_ns += row->idle.lock_ns;
    mean.idle.other_ns += row->idle.other_ns;
  }
  for (std::int64_t* value :
       {&mean.compute_ns, &mean.overlapped_comm_ns, &mean.exposed_comm_ns, &mean.exposed_memcpy_ns,
        &mean.idle.data_ns, &mean.idle.host_ns, &mean.idle.sync_ns, &mean.idle.comm_ns,
        &mean.idle.lock_ns, &mean.idle.other_ns})
    *value /= mean.steps;
  mean.idle_ns = mean.idle.sum_ns();
  mean.window_ns = mean.compute_ns + mean.exposed_comm_ns + mean.exposed_memcpy_ns + mean.idle_ns;
  return mean;
}

std::int64_t tagged_steps(const MeanStep& mean) {
  std::int64_t steps = 0;
  for (const auto& [tag, count] : mean.left_out) steps += count;
  return steps;
}

std::vector<StepPart> parts_of(const MeanStep& mean) {
  return {{"compute", mean.compute_ns},
          {"exposed communication", mean.exposed_comm_ns},
          {"exposed copies", mean.exposed_memcpy_ns},
          {"idle", mean.idle_ns},
          {"  waiting for data", mean.idle.data_ns},
          {"  host too slow", mean.idle.host_ns},
          {"  synchronisation", mean.idle.sync_ns},
          {"  in collectives", mean.idle.comm_ns},
          {"  locks", mean.idle.lock_ns},
          {"  not explained", mean.idle.other_ns},
          {"step", mean.window_ns},
          {"(overlapped communication)", mean.overlapped_comm_ns}};
}

namespace {

// Sums over the steps and gaps of one file.
struct RankSums {
  RankMean sum;
  analysis::StepGaps gaps;

  void add(const StepRow& step) {
    ++sum.steps;
    sum.window_ns += step.budget.window_ns;
    sum.compute_ns += step.budget.compute_ns;
    sum.exposed_comm_ns += step.budget.exposed_comm_ns;
    sum.exposed_memcpy_ns += step.budget.exposed_memcpy_ns;
    sum.idle_ns += step.budget.idle_ns;
    sum.idle += step.idle;
  }
  void add(const RankSums& other) {
    sum.steps += other.sum.steps;
    sum.window_ns += other.sum.window_ns;
    sum.compute_ns += other.sum.compute_ns;
    sum.exposed_comm_ns += other.sum.exposed_comm_ns;
    sum.exposed_memcpy_ns += other.sum.exposed_memcpy_ns;
    sum.idle_ns += other.sum.idle_ns;
    sum.idle += other.sum.idle;
    if (other.sum.waited_ns) sum.waited_ns = sum.waited_ns.value_or(0) + *other.sum.waited_ns;
    gaps.add(other.gaps);
  }
  RankMean mean() const {
    RankMean mean = sum;
    const std::int64_t steps = std::max<std::int64_t>(1, sum.steps);
    for (std::int64_t* value :
         {&mean.window_ns, &mean.compute_ns, &mean.exposed_comm_ns, &mean.exposed_memcpy_ns,
          &mean.idle_ns, &mean.idle.data_ns, &mean.idle.host_ns, &mean.idle.sync_ns,
          &mean.idle.comm_ns, &mean.idle.lock_ns, &mean.idle.other_ns})
      *value /= steps;
    if (mean.waited_ns) *mean.waited_ns /= steps;
    if (gaps.gaps > 0) mean.between_ns = gaps.total_ns / gaps.gaps;
    return mean;
  }
};

std::vector<RankSums> sums_of_files(const analysis::Analysis& all) {
  const std::vector<const StepRow*> plain = analysis::plain_steps(all.ranks);
  const std::set<const StepRow*> counts(plain.begin(), plain.end());
  const auto waited = analysis::waited_in_files(all.ranks, all.matches);
  std::vector<RankSums> files(all.ranks.size());
  for (std::size_t file = 0; file < files.size(); ++file) {
    for (const StepRow& step : all.ranks[file].steps) {
      if (counts.contains(&step)) files[file].add(step);
    }
    files[file].gaps = analysis::step_gaps(all.ranks[file]);
    const auto found = waited.find(file);
    if (found != waited.end()) files[file].sum.waited_ns = found->second;
  }
  return files;
}

}  // namespace

std::vector<RankMean> means_of_files(const analysis::Analysis& all) {
  std::vector<RankMean> means;
  for (const RankSums& one : sums_of_files(all)) means.push_back(one.mean());
  return means;
}

std::map<int, RankMean> means_of_ranks(const analysis::Analysis& all) {
  std::map<int, RankSums> of_rank;
  const std::vector<RankSums> files = sums_of_files(all);
  for (std::size_t file = 0; file < files.size(); ++file)
    of_rank[all.ranks[file].timeline->info.rank].add(files[file]);
  std::map<int, RankMean> means;
  for (const auto& [rank, sums] : of_rank) means[rank] = sums.mean();
  return means;
}

CommonTime::CommonTime(const analysis::Analysis& all) : clock_(all.set->clock) {
  for (const RankView& rank : all.ranks) {
    for (const StepRow& row : rank.steps)
      origin_ns_ = std::min(origin_ns_, common(*rank.timeline, row.window.start_ns));
  }
  if (origin_ns_ != INT64_MAX) return;
  for (const RankView& rank : all.ranks) {
    for (std::size_t row = 0; row < rank.timeline->size(); ++row)
      origin_ns_ = std::min(origin_ns_, common(*rank.timeline, rank.timeline->start_ns(row)));
  }
}

std::int64_t CommonTime::common(const trace::RankTimeline& timeline, std::int64_t time_ns) const {
  return clock_.of(timeline.info.rank).to_common(time_ns + timeline.info.base_ns);
}

std::optional<double> median_step_ms(const std::vector<RankView>& ranks) {
  const std::optional<double> step_ns = analysis::median_step_ns(ranks);
  return step_ns ? std::optional(*step_ns / 1e6) : std::nullopt;
}

Throughput throughput_of(const analysis::Analysis& all, const RunMetrics& run) {
  Throughput found{.tokens_per_s = run.tokens_per_s ? run.tokens_per_s : all.model.tokens_per_s,
                   .mfu = all.model.mfu,
                   .mfu_palm = all.model.mfu_palm,
                   .source = all.model.mfu ? "steps of the trace" : "",
                   .tokens_source = run.tokens_per_s ? "metrics.jsonl" : "steps of the trace"};
  if (!run.mfu) return found;
  found.mfu = run.mfu;
  found.mfu_palm = run.mfu_palm;
  found.source = "metrics.jsonl";
  if (!found.mfu_palm && all.model.palm_over_causal)
    found.mfu_palm = *run.mfu * *all.model.palm_over_causal;
  return found;
}

std::map<std::string, std::uint64_t> skipped_events(const trace::TraceSet& set) {
  std::map<std::string, std::uint64_t> all;
  for (const trace::RankTimeline& timeline : set.timelines) {
    for (const auto& [reason, count] : timeline.skipped) all[reason] += count;
  }
  return all;
}

}  // namespace sidestream::report
