#include "launch/trace/examined_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <thread>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/host_memory.hpp"
#include "core/base/warning.hpp"
#include "launch/trace/counter_commands.hpp"
#include "launch/trace/needed_memory.hpp"
#include "launch/trace/single_run.hpp"
#include "launch/trainer/ettr_account.hpp"
#include "profiling/page/document.hpp"
#include "profiling/report/json_report.hpp"
#include "profiling/report/run_directory.hpp"
#include "profiling/report/summary.hpp"

namespace sidestream::launch {
namespace {

using Json = nlohmann::ordered_json;

int threads_of(const ExaminedRun::Settings& settings) {
  const int processors = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return settings.threads.value_or(processors);
}

// A tool with too little memory ends after minutes, and says no more than that: what is known
// before comes before.
trace::TraceSet set_of(const std::vector<trace::TraceFile>& files, int threads) {
  if (const auto warning = memory_warning(files, core::read_host_memory()))
    core::print_warning(*warning);
  return trace::load_traces(files, {.threads = threads});
}

// The ledger knows all starts of a run; run.json has their account only of a run that came to its
// own end.
report::RunMetrics metrics_of(const std::vector<std::filesystem::path>& inputs) {
  report::RunMetrics metrics = report::read_run_metrics(inputs);
  for (const auto& input : inputs) {
    const auto folder = report::run_directory_of(input);
    if (!folder) continue;
    const std::filesystem::path ledger = *folder / "ettr.jsonl";
    try {
      const FoundAccount found = read_account(ledger);
      metrics.faults.insert(metrics.faults.end(), found.faults.begin(), found.faults.end());
      if (found.account) report::take_account(to_json(*found.account), ledger.string(), metrics);
    } catch (const core::Error& error) {
      metrics.faults.push_back(std::string(error.what()) +
                               ": where the time of the run went is left out");
    }
    break;
  }
  return metrics;
}

bool are_of_one_file(std::string_view fault, std::string_view other) {
  constexpr std::array<std::string_view, 3> kFiles = {"run.json", "config.cfg", "metrics.jsonl"};
  return std::any_of(kFiles.begin(), kFiles.end(), [&](std::string_view name) {
    return fault.find(name) != fault.npos && other.find(name) != other.npos;
  });
}

// No processor does more than its peak.
void warn_about_mfu(const analysis::Analysis& analysis, const report::RunMetrics& metrics,
                    trace::TraceSet& set) {
  const report::Throughput throughput = report::throughput_of(analysis, metrics);
  if (throughput.mfu && *throughput.mfu > 1)
    set.warnings.push_back(
        fmt::format("an MFU of {:.4g} % ({}) cannot be: the peak that it was told "
                    "from is too low, or the FLOPs of a token or the tokens of a "
                    "step are wrong",
                    100 * *throughput.mfu, throughput.source));
}

// One word on a file is enough, unless it is on a figure of it.
void warn_about_run_directory(const report::RunMetrics& metrics, const RunAdvice& advised,
                              trace::TraceSet& set) {
  for (const auto* told : {&metrics.faults, &metrics.refused_figures})
    set.warnings.insert(set.warnings.end(), told->begin(), told->end());
  for (const std::string& fault : advised.faults) {
    const bool said =
        std::any_of(metrics.faults.begin(), metrics.faults.end(),
                    [&](const std::string& one) { return are_of_one_file(one, fault); });
    if (!said) set.warnings.push_back(fault);
  }
}

}  // namespace

ExaminedRun::ExaminedRun(std::vector<std::filesystem::path> inputs, Settings settings)
    : inputs_(std::move(inputs)),
      found_(traces_of_one_run(inputs_)),
      exports_(found_.files),
      set_(set_of(exports_.files(), threads_of(settings))),
      analysis_(analysis::analyse(set_, threads_of(settings))),
      metrics_(metrics_of(inputs_)),
      advised_(advise_run(inputs_, analysis_, threads_of(settings))) {
  if (const auto left_out = left_out_text(found_)) set_.warnings.push_back(*left_out);
  warn_about_run_directory(metrics_, advised_, set_);
  warn_about_mfu(analysis_, metrics_, set_);
}

void ExaminedRun::take_counters(const advice::NcuByKernel& counters) {
  if (counters.empty()) return;
  analysis_.utilisation = analysis::find_utilisation(
      analysis_.plain_ranks, [&](std::string_view kernel) -> std::optional<bool> {
        const auto one = advice::counters_for(counters, std::string(kernel));
        if (!one || !one->tensor_percent) return std::nullopt;
        return *one->tensor_percent > 0;
      });
  advised_.facts.tensor_core_share = analysis_.utilisation.tensor_core_share;
  advised_.advice = advice::advise(advised_.facts);
}

report::ShownSteps ExaminedRun::shown_steps() const {
  return {analysis_, report::ShownSteps::kMostRowsOfAPage};
}

const analysis::Details& ExaminedRun::details() {
  if (!details_) details_ = analysis::look_closer(analysis_);
  return *details_;
}

Json ExaminedRun::advised(Json report, const advice::NcuByKernel& counters) const {
  advice::add_rooflines(report, advised_.facts, counters);
  advice::add_to_report(advised_.advice, report);
  report["ceilings"] = ceilings_json(advised_.facts.ceilings);
  constexpr std::size_t kTop = 5;
  report["counter_commands"] =
      counter_commands(report.at("top_ops"), kTop, analysis_, advised_.facts);
  return report;
}

Json ExaminedRun::summary(const advice::NcuByKernel& counters) const {
  return advised(report::json_summary(analysis_, metrics_, shown_steps()), counters);
}

Json ExaminedRun::report(const advice::NcuByKernel& counters) {
  return advised(report::json_report(analysis_, details(), metrics_), counters);
}

std::string ExaminedRun::report_text(const advice::NcuByKernel& counters) {
  return report(counters).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json ExaminedRun::page_part(const std::string& label, const advice::NcuByKernel& counters) {
  return page::run_document(label, analysis_, details(), summary(counters), shown_steps());
}

}  // namespace sidestream::launch
