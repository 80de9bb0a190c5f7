#include "launch/trace/run_advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "core/base/error.hpp"
#include "launch/ceilings/ceilings.hpp"
#include "launch/ceilings/datasheet.hpp"
#include "profiling/report/run_directory.hpp"
#include "profiling/verify/recorded_run.hpp"

namespace sidestream::launch {
namespace {

namespace fs = std::filesystem;

// Of another version, or still being written: the traces are enough.
std::optional<verify::RecordedRun> run_of(const fs::path& path) {
  const auto folder = report::run_directory_of(path);
  if (!folder) return std::nullopt;
  try {
    return verify::read_recorded_run(*folder);
  } catch (const core::Error&) {
    return std::nullopt;
  }
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

RunAdvice advise_run(const std::vector<fs::path>& inputs, const analysis::Analysis& analysis) {
  RunAdvice result{.facts = advice::gather_facts(analysis), .advice = {}};
  advice::Facts& facts = result.facts;
  for (const fs::path& input : inputs) {
    const auto run = run_of(input);
    if (!run) continue;
    facts.config = run->config;
    facts.environment = run->environment;
    facts.environment["command_line"] = run->command_line;
    break;
  }
  facts.ceilings = facts.on_device ? of_the_datasheet(analysis) : measured_ceilings(facts);
  result.advice = advice::advise(facts);
  return result;
}

nlohmann::ordered_json ceilings_json(const std::optional<advice::Ceilings>& ceilings) {
  if (!ceilings) return nullptr;
  return {{"flops_per_s", ceilings->flops_per_s},
          {"memory_bytes_per_s", ceilings->memory_bytes_per_s},
          {"source", ceilings->source}};
}

}  // namespace sidestream::launch
