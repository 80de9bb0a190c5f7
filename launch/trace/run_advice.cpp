#include "launch/trace/run_advice.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/printable.hpp"
#include "launch/ceilings/ceilings.hpp"
#include "launch/ceilings/roofs.hpp"
#include "profiling/report/run_directory.hpp"
#include "profiling/verify/recorded_run.hpp"

namespace sidestream::launch {
namespace {

namespace fs = std::filesystem;

// The settings alone, where the rest of a run directory is damaged or not there.
std::optional<verify::RecordedRun> settings_of(const fs::path& folder,
                                               std::vector<std::string>& faults) {
  if (!core::is_there(folder / "config.cfg")) return std::nullopt;
  try {
    return verify::RecordedRun{.folder = folder,
                               .config = verify::read_config(folder / "config.cfg")};
  } catch (const core::Error& error) {
    faults.push_back(std::string(error.what()) +
                     ": the advice does without the settings of the run");
    return std::nullopt;
  }
}

// Of another version, or damaged: the traces are enough, and it is said.
std::optional<verify::RecordedRun> run_of(const fs::path& path, std::vector<std::string>& faults) {
  const auto folder = report::run_directory_of(path);
  if (!folder) return std::nullopt;
  for (const char* name : {"run.json", "config.cfg", "metrics.jsonl"}) {
    if (core::is_there(*folder / name)) continue;
    const bool none =
        !core::is_there(*folder / "config.cfg") && !core::is_there(*folder / "run.json");
    if (!none) faults.push_back(fmt::format("{} is not there", (*folder / name).string()));
    return settings_of(*folder, faults);
  }
  try {
    return verify::read_recorded_run(*folder);
  } catch (const core::Error& error) {
    auto settings = settings_of(*folder, faults);
    const std::string text = error.what();
    if (settings) faults.push_back(text + ": the advice knows the settings of the run alone");
    return settings;
  }
}

std::optional<advice::Ceilings> roofs_of(const analysis::Analysis& analysis,
                                         const advice::Facts& facts) {
  if (!facts.on_device) {
    const auto stored = load_ceilings(ceilings_file());
    return stored ? roofs_of_processor(*stored, facts) : std::nullopt;
  }
  for (const analysis::RankView& rank : analysis.ranks) {
    for (const auto& [number, device] : rank.timeline->info.devices) {
      const auto stored = load_ceilings(ceilings_file(), device.name);
      if (auto roofs =
              roofs_of_device(stored, device.name, joined_ranks(facts), device.memory_bytes))
        return roofs;
    }
  }
  return std::nullopt;
}

// Of the folder that a run read; nothing when it is not here.
std::optional<advice::DataFacts> data_of(const advice::Facts& facts) {
  const auto folder = facts.setting("data");
  std::error_code error;
  if (!folder || !fs::is_directory(*folder, error)) return std::nullopt;
  advice::DataFacts data;
  for (const auto& entry : fs::directory_iterator(*folder, error)) {
    if (!entry.is_regular_file(error)) continue;
    data.files += 1;
    data.mean_bytes += static_cast<double>(entry.file_size(error));
  }
  if (data.files == 0) return std::nullopt;
  data.mean_bytes /= data.files;
  return data;
}

// Empty where run.json is of the job of the traces, as far as they say how large that was.
std::string other_job(const verify::RecordedRun& run, const analysis::Analysis& analysis) {
  const auto noted = run.environment.find("world_size");
  if (noted == run.environment.end()) return "";
  for (const analysis::RankView& rank : analysis.ranks) {
    const int ranks = rank.timeline->info.world_size;
    if (ranks > 0 && noted->second != std::to_string(ranks))
      return fmt::format(
          "{}: \"world_size\" is {}, and {} is of a job of {}: the advice does without what it "
          "says of machine and job",
          (run.folder / "run.json").string(), core::printable(noted->second),
          rank.timeline->info.file, ranks);
  }
  return "";
}

nlohmann::ordered_json known(double rate) {
  return rate > 0 ? nlohmann::ordered_json(rate) : nlohmann::ordered_json();
}

}  // namespace

RunAdvice advise_run(const std::vector<fs::path>& inputs, const analysis::Analysis& analysis,
                     int threads) {
  RunAdvice result{.facts = advice::gather_facts(analysis, threads), .advice = {}};
  advice::Facts& facts = result.facts;
  for (const fs::path& input : inputs) {
    const auto run = run_of(input, result.faults);
    if (!run) continue;
    facts.config = run->config;
    if (const std::string fault = other_job(*run, analysis); !fault.empty())
      result.faults.push_back(fault);
    else
      facts.environment = run->environment;
    facts.environment["command_line"] = run->command_line;
    facts.data = data_of(facts);
    facts.foreign = false;
    break;
  }
  facts.ceilings = roofs_of(analysis, facts);
  result.advice = advice::advise(facts);
  return result;
}

nlohmann::ordered_json ceilings_json(const std::optional<advice::Ceilings>& ceilings) {
  if (!ceilings) return nullptr;
  return {{"flops_per_s", ceilings->flops_per_s},
          {"memory_bytes_per_s", ceilings->memory_bytes_per_s},
          {"host_to_device_bytes_per_s", known(ceilings->host_to_device_bytes_per_s)},
          {"device_to_host_bytes_per_s", known(ceilings->device_to_host_bytes_per_s)},
          {"link_bytes_per_s", known(ceilings->link_bytes_per_s)},
          {"of_datasheet", ceilings->of_datasheet},
          {"source", ceilings->source}};
}

}  // namespace sidestream::launch
