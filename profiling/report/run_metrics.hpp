// What a run directory knows and a trace does not: throughput, MFU, the share of useful time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace sidestream::report {

// Where the wall time of a run went, over all its starts.
struct WallTimePart {
  std::string key;   // "startup_s"
  std::string name;  // "start-up"
  double seconds = 0;
};

// What the run said of itself at its end, from the phases of all its steps: run.json's verdict.
// Shares of a step.
struct OwnVerdict {
  std::int64_t steps = 0;
  double compute = 0, comm = 0, io = 0, cpu = 0;
  std::vector<int> late_ranks = {};  // of all these steps; empty: none
  double late_cost_ns = 0;           // to each of the others, a step
};

struct RunMetrics {
  std::optional<double> tokens_per_s = {};  // medians over the logged steps
  std::optional<double> mfu = {};
  std::optional<double> mfu_palm = {};
  std::optional<double> ettr = {};  // effective training time: productive over wall time
  std::optional<OwnVerdict> verdict = {};
  double wall_s = 0;
  std::vector<WallTimePart> wall_time = {};          // in the order of that file
  std::map<std::int64_t, double> mfu_of_steps = {};  // as logged
  std::vector<std::string> faults = {};              // what could not be read of these files
  std::vector<std::string> refused_figures = {};     // what was read and cannot be
};

// From metrics.jsonl and run.json of the first of these paths that is a run directory, or lies
// inside one. Lines that do not parse and figures that cannot be are passed over, and told; the
// last line, when it has no end, without a word: a run may still be writing.
RunMetrics read_run_metrics(const std::vector<std::filesystem::path>& paths);

// Instead of what run.json holds: `account`, of this file, has the keys of its ettr_account.
void take_account(const nlohmann::json& account, const std::string& file, RunMetrics& metrics);

}  // namespace sidestream::report
