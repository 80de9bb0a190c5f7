// Figures that the text and the JSON report share: one number in every view.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiling/analysis/analysis.hpp"
#include "profiling/report/run_metrics.hpp"

namespace sidestream::report {

// Mean of the untagged steps of all ranks, rounded so that the parts still add up.
struct MeanStep {
  std::int64_t steps = 0;
  std::map<std::string, std::int64_t> left_out = {};  // tagged ones of all ranks, by first tag
  std::int64_t window_ns = 0;
  std::int64_t compute_ns = 0;
  std::int64_t overlapped_comm_ns = 0;
  std::int64_t exposed_comm_ns = 0;
  std::int64_t exposed_memcpy_ns = 0;
  std::int64_t idle_ns = 0;
  analysis::IdleCauses idle;
};

// Left out of the mean, of all ranks.
std::int64_t tagged_steps(const MeanStep& mean);

// One line of the budget, in the words that people read.
struct StepPart {
  std::string name;
  std::int64_t time_ns = 0;
};
std::vector<StepPart> parts_of(const MeanStep& mean);

// A step of one rank, over its steps without tags (over all where every step of the run has one).
struct RankMean {
  std::int64_t steps = 0;
  std::int64_t window_ns = 0;
  std::int64_t compute_ns = 0;
  std::int64_t exposed_comm_ns = 0;
  std::int64_t exposed_memcpy_ns = 0;
  std::int64_t idle_ns = 0;
  analysis::IdleCauses idle = {};
  std::optional<std::int64_t> waited_ns = {};   // for the others in collectives; hidden or not
  std::optional<std::int64_t> between_ns = {};  // from a step to the next one; step_gaps.hpp
};
// Of each file, by its place in the set.
std::vector<RankMean> means_of_files(const analysis::Analysis& all);
// Of all files of each rank.
std::map<int, RankMean> means_of_ranks(const analysis::Analysis& all);

MeanStep mean_step(const std::vector<analysis::RankView>& ranks);

// Time of all steps that operations are counted over, of all ranks; 0 without steps.
double stepped_ns(const analysis::Analysis& all);
// Of that time; nothing without steps. On a device several streams may work at once, and all of it
// together may be above 1.
std::optional<double> step_share(const analysis::Operation& one, double stepped_ns);

// Times of all ranks on one clock, from the start of the first step of any rank (without steps:
// from the first event). Scripts in JavaScript cannot tell the nanoseconds of an epoch apart.
class CommonTime {
 public:
  explicit CommonTime(const analysis::Analysis& all);
  std::int64_t operator()(const trace::RankTimeline& timeline, std::int64_t time_ns) const {
    return common(timeline, time_ns) - origin_ns_;
  }

 private:
  std::int64_t common(const trace::RankTimeline& timeline, std::int64_t time_ns) const;

  const trace::ClockModel& clock_;
  std::int64_t origin_ns_ = INT64_MAX;
};

// Median length of the untagged steps; nothing when no rank has steps.
std::optional<double> median_step_ms(const std::vector<analysis::RankView>& ranks);

// Of metrics.jsonl where that has them, else of the steps of the trace. metrics.jsonl has one of
// the two utilisations: the other differs by the FLOPs of a token only.
struct Throughput {
  std::optional<double> tokens_per_s = {};
  std::optional<double> mfu = {};
  std::optional<double> mfu_palm = {};
  std::string source = {};         // of the utilisation; empty: there is none
  std::string tokens_source = {};  // of the tokens per second
};
Throughput throughput_of(const analysis::Analysis& all, const RunMetrics& run);

// Events left out, by reason, over all files.
std::map<std::string, std::uint64_t> skipped_events(const trace::TraceSet& set);

}  // namespace sidestream::report
