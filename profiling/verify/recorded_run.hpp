// What a run left in its directory, as far as a comparison needs it: config.cfg, run.json,
// metrics.jsonl.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiling/verify/machine_change.hpp"

namespace sidestream::verify {

// One logged step. Times are means since the line before: log every step for scatter that means
// something.
struct RecordedStep {
  std::int64_t step = 0;
  double loss = 0;
  double step_ms = 0;
  double reader_ms = 0;  // of it, waiting for data
  std::optional<std::int64_t> memory_bytes = {};
  std::optional<double> val_loss = {};  // empty: not evaluated; NaN: no finite number
};

// What was read, wherever it lay. Empty: synthetic data, no such split, or a record of before it
// was kept.
struct DataFingerprints {
  std::string train = {};
  std::string validation = {};
};

struct RecordedRun {
  std::filesystem::path folder;
  std::map<std::string, std::string> config = {};       // what is set in config.cfg
  std::map<std::string, std::string> environment = {};  // of run.json: world_size, processor, ...
  DataFingerprints data = {};
  std::string command_line = {};
  std::string started_at = {};  // empty: a record of before it was kept
  std::string version = {};
  std::vector<RecordedStep> steps = {};
  std::optional<double> exposed_comm_ms = {};  // median of a step
  std::optional<double> tokens_per_s = {};
  std::optional<int> exit_code = {};           // empty: it has not ended, or was killed
  std::optional<std::int64_t> last_step = {};  // the same
  std::optional<MachineState> machine = {};    // meanwhile; empty: nobody looked
};

// Throws core::DataError naming the file, and the byte for a line that is no metrics. A last line
// without line break is left out: the run was killed while it wrote.
RecordedRun read_recorded_run(const std::filesystem::path& folder);

// What is set in a configuration. Throws core::DataError (origin and line) for what is no
// `name = value`.
std::map<std::string, std::string> config_values(const std::string& content,
                                                 const std::string& origin);
std::map<std::string, std::string> read_config(const std::filesystem::path& file);

// Figures of the steps after the first `warm_up` ones. Nothing when no step is left.
struct TypicalStep {
  std::int64_t steps = 0;
  double step_ms = 0;                                  // median
  double reader_ms = 0;                                // median
  std::optional<std::int64_t> peak_memory_bytes = {};  // of all steps
};
std::optional<TypicalStep> typical_step(const RecordedRun& run, int warm_up);

double median_of(std::vector<double> values);

}  // namespace sidestream::verify
