#include "launch/trace/advised_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/error.hpp"
#include "launch/ceilings/ceilings.hpp"
#include "launch/ceilings/datasheet.hpp"
#include "profiling/report/json_report.hpp"
#include "profiling/verify/recorded_run.hpp"

namespace sidestream::launch {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The run directory that a trace lies in: run/trace/step_N/file.
std::optional<verify::RecordedRun> run_of(fs::path path) {
  path = fs::absolute(path);
  constexpr int kLevels = 4;
  for (int level = 0; level < kLevels; ++level, path = path.parent_path()) {
    if (!fs::exists(path / "run.json")) continue;
    try {
      return verify::read_recorded_run(path);
    } catch (const core::Error&) {
      return std::nullopt;  // of another version, or still being written: the traces are enough
    }
  }
  return std::nullopt;
}

// Of the cores that were measured, the part that a rank computes on: what all of them reach
// together is no roof of one rank.
double share_of_rank(const advice::Facts& facts, int cores) {
  const auto threads = facts.environment.find("threads_per_rank");
  if (threads == facts.environment.end() || cores <= 0) return 1;
  return std::clamp(std::atof(threads->second.c_str()) / cores, 1.0 / cores, 1.0);
}

// What was measured here is the roof of traces from a processor of this kind only.
std::optional<advice::Ceilings> measured_ceilings(const advice::Facts& facts) {
  const auto stored = load_ceilings(ceilings_file());
  const auto processor = facts.environment.find("processor");
  if (!stored || processor == facts.environment.end() || processor->second != stored->processor)
    return std::nullopt;
  const double share = share_of_rank(facts, stored->cores);
  return advice::Ceilings{
      .flops_per_s = {{"fp32", stored->fp32_flops_per_s * share},
                      {"bf16", stored->bf16_flops_per_s * share}},
      .memory_bytes_per_s = stored->memory_bytes_per_s * share,
      .source = fmt::format("measured on {} cores of {}; {:.3g} of it is a rank's", stored->cores,
                            stored->processor, share)};
}

std::optional<advice::Ceilings> of_the_datasheet(const analysis::Analysis& analysis) {
  for (const analysis::RankView& rank : analysis.ranks) {
    for (const auto& [number, device] : rank.timeline->info.devices) {
      const auto peaks = datasheet_peaks(device.name);
      if (peaks)
        return advice::Ceilings{.flops_per_s = peaks->flops_per_s,
                                .memory_bytes_per_s = peaks->memory_bytes_per_s,
                                .source = "datasheet of " + device.name + ", not measured"};
    }
  }
  return std::nullopt;
}

}  // namespace

std::string AdvisedReport::text() const {
  return json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

AdvisedReport advised_report(const std::vector<fs::path>& inputs,
                             const analysis::Analysis& analysis, const report::RunMetrics& metrics,
                             const advice::NcuByFunction& counters) {
  advice::Facts facts = advice::gather_facts(analysis);
  for (const fs::path& input : inputs) {
    const auto run = run_of(input);
    if (!run) continue;
    facts.config = run->config;
    facts.environment = run->environment;
    facts.environment["command_line"] = run->command_line;
    break;
  }
  facts.ceilings = facts.on_device ? of_the_datasheet(analysis) : measured_ceilings(facts);
  AdvisedReport result{.json = Json::parse(report::json_report(analysis, metrics)),
                       .facts = facts,
                       .advice = advice::advise(facts),
                       .ceilings = facts.ceilings};
  advice::add_rooflines(result.json, facts, counters);
  advice::add_to_report(result.advice, result.json);
  return result;
}

Json ceilings_json(const std::optional<advice::Ceilings>& ceilings) {
  if (!ceilings) return nullptr;
  return {{"flops_per_s", ceilings->flops_per_s},
          {"memory_bytes_per_s", ceilings->memory_bytes_per_s},
          {"source", ceilings->source}};
}

}  // namespace sidestream::launch
