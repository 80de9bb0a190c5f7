#include "launch/commands/bench_step.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "core/base/error.hpp"
#include "core/checkpoint/run_directory.hpp"
#include "launch/assembly/assembly.hpp"
#include "launch/assembly/data_assembly.hpp"
#include "launch/assembly/training_run.hpp"
#include "launch/ceilings/median_interval.hpp"
#include "launch/commands/train_program.hpp"
#include "launch/options/train_parser.hpp"
#include "launch/process/agreement.hpp"
#include "launch/reporting/metrics_file.hpp"
#include "launch/trainer/mfu.hpp"
#include "launch/trainer/run_record.hpp"
#include "profiling/statistics/median.hpp"

namespace sidestream::launch {
namespace {

namespace fs = std::filesystem;

// A folder that the first rank makes and removes, and all ranks know.
class TemporaryFolder {
 public:
  // Collective. Throws AgreedError.
  explicit TemporaryFolder(Session& session) {
    comm::Communicator& ranks = session.communicator();
    if (ranks.topology().node_count > 1)
      throw AgreedError(
          "the ranks are on several machines: --run-dir FOLDER names one that all of them share",
          core::ExitCode::kConfig);
    agree(ranks, [&] {
      if (session.is_first_rank()) make();
    });
    path_ = ranks.exchange(made_.string()).front();
  }
  ~TemporaryFolder() {
    std::error_code ignored;  // what is left is in the way of nobody
    if (!made_.empty()) fs::remove_all(made_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const fs::path& path() const noexcept { return path_; }

 private:
  void make() {
    std::string name = (fs::temp_directory_path() / "sidestream-bench-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw core::ConfigError("cannot make a folder like " + name +
                              ": set TMPDIR, or say --run-dir FOLDER");
    made_ = name;
  }

  fs::path made_;  // empty on the other ranks
  fs::path path_;
};

struct Measured {
  RunRecord record;
  std::vector<double> steps_ms;  // after the warm-up
};

Measured read_run(const StepBenchOptions& options) {
  const checkpoint::RunPaths paths(options.train.run_dir);
  Measured measured{.record = read_run_record(paths.run_json()), .steps_ms = {}};
  for (const StepMetrics& step : read_metrics(paths.metrics())) {
    if (step.step > options.warm_up) measured.steps_ms.push_back(step.batch_cost_s * 1e3);
  }
  return measured;
}

// Against what `bench ceilings` has measured: of a GPU its own, for each rank.
Mfu utilisation(TrainOptions options, const Measured& run) {
  set_vocabulary(options, open_data(options).vocab_size);
  const auto ceilings = load_ceilings(ceilings_file(), run.record.gpu);
  const std::int64_t length = sequence_length(options);
  if (run.record.gpu.empty())
    return Mfu(options.model.config, length, options.precision, run.record.nodes, ceilings);
  std::optional<double> peak;
  if (ceilings && ceilings->device) {
    const auto& flops = ceilings->device->flops_per_s;
    const auto found = flops.find(run.record.precision);
    if (found != flops.end()) peak = found->second * run.record.world_size;
  }
  return Mfu(options.model.config, length, peak);
}

std::string interval_text(const std::vector<double>& steps_ms) {
  const auto interval = series_median_interval(steps_ms);
  if (!interval) return "too few steps for an interval, six are the least";
  const double low =
      std::max(interval->low, 0.0);  // batches that scatter may say less than no time
  return fmt::format("95 %: {:.3f} to {:.3f} ms", low, interval->high);
}

std::string exposed_text(const RunRecord& record) {
  if (record.world_size == 1) return "none, there is one rank";
  const auto exposed_ms =
      record.performance ? record.performance->exposed_comm_ms_p50 : std::optional<double>();
  if (exposed_ms) return fmt::format("{:.3f} ms a step (median, mean over the ranks)", *exposed_ms);
  return "not known on a GPU without a profile: `sidestream train --profile ...`, then "
         "sidestream-trace report";
}

std::string model_text(const Mfu& mfu, double tokens_per_s) {
  std::string text =
      fmt::format("{:.4g} TFLOP/s", mfu.flops_per_token().causal * tokens_per_s * 1e-12);
  const auto share = mfu.at(tokens_per_s);
  return text + (share ? fmt::format(", {:.1f} % of what `bench ceilings` measured", *share * 100)
                       : "; `sidestream bench ceilings` has not measured this machine yet");
}

void print(const StepBenchOptions& options, const Measured& run) {
  const RunRecord& record = run.record;
  if (run.steps_ms.empty()) {
    fmt::print("no step was taken after the warm-up\n");
    return;
  }
  const double median_ms = statistics::median(run.steps_ms);
  const double tokens_per_s =
      static_cast<double>(tokens_per_step(options.train, record.world_size)) / (median_ms * 1e-3);
  fmt::print(
      "\nstep of {}, {} rank(s) x {} thread(s), {}, {}, {}: {} steps after {} to warm up, data: "
      "{}\n"
      "  step time              {:.3f} ms (median; {})\n"
      "  tokens/s               {:.1f}\n"
      "  exposed communication  {}\n"
      "  model                  {}\n",
      options.train.model.preset, record.world_size, record.threads_per_rank,
      record.gpu.empty() ? processor_name() : record.gpu, record.backend, record.precision,
      run.steps_ms.size(), options.warm_up, options.train.data.source, median_ms,
      interval_text(run.steps_ms), tokens_per_s, exposed_text(record),
      model_text(utilisation(options.train, run), tokens_per_s));
}

core::ExitCode bench_step(Session& session, StepBenchOptions options,
                          const std::string& command_line) {
  if (session.is_first_rank())
    for (const std::string& remark : options.remarks) fmt::print("{}\n", remark);
  std::optional<TemporaryFolder> folder;
  if (!options.keeps_run) options.train.run_dir = folder.emplace(session).path() / "run";
  const core::ExitCode code = run_training(session, options.train, command_line);
  if (session.is_first_rank()) print(options, read_run(options));
  return code;
}

}  // namespace

int run_bench_step(const CommandCall& call, const StepBenchOptions& options) {
  const std::string command_line = command_line_of(call);  // MPI takes words out of it
  return run_train_program(call, options.train, [&](Session& session) {
    return bench_step(session, options, command_line);
  });
}

}  // namespace sidestream::launch
