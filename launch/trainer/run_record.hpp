// run.json: what ran where, how it ended, how fast it was. Written at the start and again at the
// end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "comm/topology.hpp"
#include "core/base/exit_code.hpp"
#include "core/data/fingerprint.hpp"
#include "launch/trainer/ettr_account.hpp"
#include "launch/trainer/graph_use.hpp"
#include "launch/trainer/memory_use.hpp"
#include "profiling/record/verdict.hpp"

namespace sidestream::launch {

// Medians over the steps after the first three (allocation, bucket order, caches) that took an
// update. Evaluations and waits for saves lie between steps.
struct RunPerformance {
  std::int64_t steps = 0;  // that the medians are taken over
  double step_ms_p50 = 0;
  double tokens_per_s = 0;  // tokens of a step over the median step time
  // Mean over ranks; not measured on a GPU: its trace says it.
  std::optional<double> exposed_comm_ms_p50 = {};
  double reader_cost_ms_p50 = 0;
};

struct StepSample {
  std::int64_t step_ns = 0;
  std::optional<std::int64_t> exposed_comm_ns = {};
  std::int64_t reader_ns = 0;
};

RunPerformance summarise(const std::vector<StepSample>& samples, std::int64_t tokens_per_step);

// What --packed-attention and --tune-products came to.
struct GpuOperatorUse {
  bool packed_attention = false, tuned_products = false;
};

struct RunRecord {
  std::string command_line;
  std::string started_at;  // UTC, ISO 8601
  int world_size = 1;
  int nodes = 1;
  int threads_per_rank = 1;
  std::string backend;
  bool baseline = false;
  std::string precision;
  std::int64_t parameters = 0;
  data::Fingerprints data = {};
  std::string gpu = {};         // name of the first rank's; empty: on the processor
  std::string gpu_driver = {};  // as the driver calls itself; not read where there is no GPU
  std::optional<GpuOperatorUse> gpu_operators = {};  // empty on the processor; not read back
  std::vector<std::string> warnings = {};
  std::optional<int> exit_code = {};  // empty while running
  std::optional<double> wall_s = {};
  std::optional<std::int64_t> last_step = {};
  std::optional<double> last_val_loss = {};
  // In steps until --target-val-loss was reached, those that were taken back among them.
  std::optional<double> time_to_target_s = {};
  std::optional<RunPerformance> performance = {};
  std::optional<MemoryUse> memory = {};
  std::optional<GraphUse> cuda_graph = {};         // empty: not asked for; not read back
  std::optional<record::RunVerdict> verdict = {};  // not read back
  std::optional<EttrAccount> ettr = {};            // over all starts of the run; not read back
};

// The first line in which NVIDIA's driver names itself; empty without one.
std::string gpu_driver_text();

// Throws Error when the file cannot be written.
void write_run_record(const RunRecord& record, const std::filesystem::path& file);

// Throws DataError naming file and field.
RunRecord read_run_record(const std::filesystem::path& file);

}  // namespace sidestream::launch
