// The traces of one run, read and understood. The details, which cost more than all the rest, are
// looked at when something first needs them, and once.
//
//   ExaminedRun run({"runs/a"}, {.threads = 2});
//   page::DocumentParts parts{.title = "runs/a", .ceilings = ceilings_json(run.facts().ceilings)};
//   parts.runs.push_back(run.page_part("runs/a"));
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "launch/trace/nsys_export.hpp"
#include "launch/trace/run_advice.hpp"
#include "profiling/advice/roofline.hpp"
#include "profiling/analysis/details.hpp"
#include "profiling/report/run_metrics.hpp"
#include "profiling/report/shown_steps.hpp"
#include "profiling/report/tables.hpp"
#include "profiling/trace/trace_set.hpp"

namespace sidestream::launch {

class ExaminedRun {
 public:
  struct Settings {
    std::optional<int> threads = {};  // files read at once; empty: every core
  };

  // inputs: a run directory, folders with traces, or trace files. Throws core::DataError, and
  // core::ConfigError for several run directories.
  ExaminedRun(std::vector<std::filesystem::path> inputs, Settings settings);
  ExaminedRun(const ExaminedRun&) = delete;
  ExaminedRun& operator=(const ExaminedRun&) = delete;

  const std::vector<std::filesystem::path>& inputs() const noexcept { return inputs_; }
  const trace::TraceSet& traces() const noexcept { return set_; }
  const analysis::Analysis& analysis() const noexcept { return analysis_; }
  const report::RunMetrics& metrics() const noexcept { return metrics_; }
  const advice::Facts& facts() const noexcept { return advised_.facts; }
  const advice::Advice& advice() const noexcept { return advised_.advice; }

  // Counters of kernels say more than their names do: the advice is given anew.
  void take_counters(const advice::NcuByKernel& counters);

  // Not from two threads at once: the first call looks.
  const analysis::Details& details();
  report::Findings findings() { return {analysis_, details()}; }

  // What report.json begins with, which needs no details: steps (those that a page shows), budget,
  // verdict, advice, the longest operations with bound and cause.
  nlohmann::ordered_json summary(const advice::NcuByKernel& counters = {}) const;
  // report.json with the advice, and bound and cause of the longest operations.
  nlohmann::ordered_json report(const advice::NcuByKernel& counters = {});
  // As the file is written: one key a line, with what is no UTF-8 replaced.
  std::string report_text(const advice::NcuByKernel& counters = {});
  // This run on a page, for page::DocumentParts::runs.
  nlohmann::ordered_json page_part(const std::string& label,
                                   const advice::NcuByKernel& counters = {});

 private:
  report::ShownSteps shown_steps() const;
  nlohmann::ordered_json advised(nlohmann::ordered_json report,
                                 const advice::NcuByKernel& counters) const;

  std::vector<std::filesystem::path> inputs_;
  trace::FoundTraces found_;
  NsysExports exports_;
  trace::TraceSet set_;
  analysis::Analysis analysis_;
  report::RunMetrics metrics_;
  RunAdvice advised_;
  std::optional<analysis::Details> details_;
};

}  // namespace sidestream::launch
