#include "launch/assembly/training_run.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/processors.hpp"
#include "core/checkpoint/run_directory.hpp"
#include "launch/assembly/assembly.hpp"
#include "launch/assembly/data_assembly.hpp"
#include "launch/assembly/data_check.hpp"
#include "launch/assembly/live_run.hpp"
#include "launch/assembly/memory_check.hpp"
#include "launch/assembly/run_start.hpp"
#include "launch/assembly/settings_agreement.hpp"
#include "launch/assembly/stage_guard.hpp"
#include "launch/device/device_session.hpp"
#include "launch/device/gpu_operators.hpp"
#include "launch/device/gpu_peak.hpp"
#include "launch/options/train_parser.hpp"
#include "launch/process/agreement.hpp"
#include "launch/process/tuning.hpp"
#include "launch/recording/run_recording.hpp"
#include "launch/reporting/progress_reporter.hpp"
#include "model/hugging_face.hpp"
#include "model/language_model.hpp"

namespace sidestream::launch {
namespace {

using core::ExitCode;

int set_up_process(const TrainOptions& options, comm::Communicator& communicator) {
  const int threads = pin_and_set_threads(communicator, options.threads,
                                          options.pin_threads ? Pinning::kOn : Pinning::kOff);
  flush_denormals_on_all_threads(options.flush_denormals);
  at::globalContext().setDeterministicAlgorithms(options.deterministic, /*warn_only=*/false);
  return threads;
}

// Settings that somebody chose and that change nothing beside the others.
void note_idle_settings(const TrainOptions& options, std::vector<std::string>& notes) {
  const parallel::DataParallelConfig gradients = data_parallel_config(options);
  const parallel::OptimizerConfig usual, &asked = gradients.optimizer;
  const auto note = [&](bool is_idle, const char* flag, const char* why) {
    if (is_idle) notes.push_back(fmt::format("warning: {} changes nothing: {}", flag, why));
  };
  const bool adamw = asked.algorithm == parallel::OptimizerAlgorithm::kAdamW;
  note(adamw && asked.momentum != usual.momentum, "--momentum", "it is for --algorithm sgd");
  note(!adamw && (asked.beta1 != usual.beta1 || asked.beta2 != usual.beta2), "--beta1 or --beta2",
       "they are for --algorithm adamw");
  note(!adamw && asked.eps != usual.eps, "--eps", "it is for --algorithm adamw");
  note(gradients.gradient_sync == parallel::GradientSync::kPerParameter && gradients.bucket_mb,
       "--bucket-mb", "--bucketing is off");
}

// What can be, and is hardly meant. LibTorch starts all threads, which takes its time.
std::vector<std::string> notes_on_settings(const TrainOptions& options, int threads) {
  std::vector<std::string> notes;
  const auto cores = static_cast<int>(core::allowed_processors().size());
  if (options.threads && cores > 0 && threads > cores)
    notes.push_back(
        fmt::format("warning: --threads: {} threads of a rank on {} {}: they take turns", threads,
                    cores, cores == 1 ? "core" : "cores"));
  if (options.schedule.warmup_steps > options.steps)
    notes.push_back(fmt::format(
        "warning: --warmup-steps {} are more than --steps {}: the learning rate ends below --lr {}",
        options.schedule.warmup_steps, options.steps, options.schedule.lr));
  note_idle_settings(options, notes);
  return notes;
}

std::vector<std::string> warnings_among(const std::vector<std::string>& notes) {
  constexpr std::string_view kWarning = "warning: ";
  std::vector<std::string> warnings;
  for (const std::string& note : notes) {
    if (note.starts_with(kWarning)) warnings.push_back(note.substr(kWarning.size()));
  }
  return warnings;
}

model::LayerRanges wanted_layer_ranges(const TrainOptions& options) {
  const bool wanted = options.ranges == Ranges::kLayers || options.record.wants_modules();
  return wanted ? model::LayerRanges::kOn : model::LayerRanges::kOff;
}

std::string name_of(Precision precision) {
  switch (precision) {
    case Precision::kTf32:
      return "tf32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp16:
      return "fp16";
    case Precision::kFp32:
      break;
  }
  return "fp32";
}

Mfu make_mfu(const TrainOptions& options, const comm::Communicator& communicator,
             const DeviceSession& device) {
  if (!device.on_gpu()) {
    return Mfu(options.model.config, sequence_length(options), options.precision,
               communicator.topology().node_count, load_ceilings(ceilings_file()));
  }
  const std::optional<double> one = gpu_peak_flops_per_s(device.name(), options.precision);
  return Mfu(options.model.config, sequence_length(options),
             one ? std::optional(*one * communicator.size()) : std::nullopt);
}

RunRecord make_record(const TrainOptions& options, const comm::Communicator& communicator,
                      const DeviceSession& device, int threads, const std::string& command_line) {
  return {.command_line = command_line,
          .started_at = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
          .world_size = communicator.size(),
          .nodes = communicator.topology().node_count,
          .threads_per_rank = threads,
          .backend = std::string(communicator.backend_name()),
          .baseline = options.baseline,
          .precision = name_of(options.precision),
          .parameters = model::parameter_count(options.model.config),
          .gpu = device.on_gpu() ? device.name() : "",
          .gpu_driver = device.on_gpu() ? gpu_driver_text() : "",
          .gpu_operators = device.on_gpu()
                               ? std::optional(GpuOperatorUse{
                                     .packed_attention = options.model.config.packed_attention,
                                     .tuned_products = options.model.config.tune_products})
                               : std::nullopt};
}

std::shared_ptr<faults::FaultInjector> planted_faults(const TrainOptions& options,
                                                      const comm::Communicator& communicator) {
  return std::make_shared<faults::FaultInjector>(
      options.faults, faults::Victim{.rank = communicator.rank(),
                                     .attempt = faults::Victim::attempt_of_this_process()});
}

// Of this rank, and what of the options depends on it.
void choose_device(std::optional<DeviceSession>& device, Session& session, TrainOptions& options) {
  agree_on_setup(session, options, [&] {
    device.emplace(session.communicator(), options);
    settle_gpu_operators(options, device->on_gpu());
  });
  if (device->on_gpu()) agree_on_gpu_operators(options, session.communicator());
}

DataSources open_and_check_data(Session& session, TrainOptions& options, StageGuard& guard) {
  DataSources sources;
  agree_on_setup(session, options, [&] {
    sources = open_data(options);
    set_vocabulary(options, sources.vocab_size);
  });
  check_data_together(session, sources, options, [&] { guard.beat(ranges::Phase::kData); });
  return sources;
}

void tell_gpu_operators(RunReporter& reporter, const DeviceSession& device,
                        const TrainOptions& options) {
  if (!device.on_gpu()) return;
  const model::ModelConfig& model = options.model.config;
  const std::string_view products =
      model.tune_products ? "products are cublasLt's fastest, which the first step times"
                          : "products are those that LibTorch chooses";
  if (model.family == "mlp") return reporter.info(fmt::format("{}: {}", device.name(), products));
  reporter.info(fmt::format("{}: attention runs {}; {}", device.name(),
                            attention_kernel(device.device(), options), products));
}

void append(std::vector<std::string>& lines, const std::vector<std::string>& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

std::vector<std::string> resumed_lines(const checkpoint::Checkpoint& from, std::int64_t steps) {
  const std::int64_t step = from.manifest.step;
  std::vector<std::string> lines = {
      fmt::format("resumed from {}, step {}", from.folder.string(), step)};
  if (step >= steps)
    lines.push_back(fmt::format(
        "nothing is left to train: --steps {} is not more than the {} of the checkpoint", steps,
        step));
  return lines;
}

// Nothing of the run directory is touched: it tells of the run that trained.
ExitCode end_of_a_run_that_is_done(const Session& session, const checkpoint::Checkpoint& from,
                                   std::int64_t steps, std::vector<std::string> notes) {
  if (!session.is_first_rank()) return ExitCode::kDone;
  ProgressReporter progress({.total_steps = steps});
  append(notes, resumed_lines(from, steps));
  if (from.manifest.step < steps)
    notes.push_back(fmt::format(
        "nothing is left to train: --target-val-loss was reached at step {}", from.manifest.step));
  for (const std::string& note : notes) progress.info(note);
  return ExitCode::kDone;
}

RunReporter::Calls calls_of_reporter(const Session& session, const DeviceSession& device,
                                     std::function<void()> hold) {
  return {.device_memory =
              [&] { return device_memory_peak_bytes(device.device(), session.communicator()); },
          .hold_folder = std::move(hold)};
}

ExitCode exit_code_of(StopReason reason) {
  return reason == StopReason::kRequested ? ExitCode::kPreempted : ExitCode::kDone;
}

// All steps. A failure is told while the replicas still stand: what they say when they go down is
// less than the cause.
ExitCode train_and_report(const Session& session, LiveRun& run, TrainingState& state,
                          RunReporter& reporter, const Mfu& mfu) {
  try {
    return exit_code_of(run.train(state, reporter, mfu));
  } catch (const AgreedError& error) {
    reporter.finish_failed(error, state);
    throw;
  } catch (const std::exception& error) {
    session.communicator().announce_failure(error.what());
    reporter.finish_failed(error, state);
    throw;
  }
}

}  // namespace

core::ExitCode run_training(Session& session, TrainOptions options,
                            const std::string& command_line) {
  std::optional<StageGuard> guard(std::in_place, session, options, StageGuard::set_up());
  guard->beat(ranges::Phase::kData);
  require_same_settings(session, options);
  std::optional<DeviceSession> device;
  choose_device(device, session, options);
  options.model.config.layer_ranges = wanted_layer_ranges(options);
  agree_on_setup(session, options, [&] { check_recording(options.record); });
  const int threads = set_up_process(options, session.communicator());
  const auto faults = planted_faults(options, session.communicator());
  guard->beat(ranges::Phase::kData);
  faults->pass(faults::Point::kSetUp, 0);
  const DataSources sources = open_and_check_data(session, options, *guard);
  guard->beat(ranges::Phase::kCheckpoint);
  wait_for_start_before(session, options);
  guard->beat(ranges::Phase::kCheckpoint);
  std::vector<std::string> notes = notes_on_settings(options, threads);
  const auto saved = saved_steps(session, options);
  const auto resume_from = checkpoint_to_resume(session, options, notes);
  const auto initial_weights = check_start(session, options, resume_from, notes);
  if (has_nothing_left(session, options, resume_from))
    return end_of_a_run_that_is_done(session, *resume_from, options.steps, notes);
  const auto memory = check_memory(session, options, *device, notes);
  guard->beat(ranges::Phase::kCheckpoint);
  const auto hold =
      make_hold(claim_run_directory(session, options, resume_from, saved, notes), options);

  LiveRun run(session, options, sources, *device, hold, faults);
  TrainingState state = run.restore(resume_from, initial_weights, notes);
  const Mfu mfu = make_mfu(options, session.communicator(), *device);
  RunReporter reporter;
  RunRecord record = make_record(options, session.communicator(), *device, threads, command_line);
  agree_on_setup(session, options, [&] {
    if (!session.is_first_rank()) return;
    record.data = fingerprints_of(sources, options);
    if (resume_from) note_other_data(options, record.data, *resume_from, notes);
    record.memory = memory;
    record.warnings = warnings_among(notes);
    reporter = RunReporter(options, record, mfu, state, calls_of_reporter(session, *device, hold));
  });
  tell_gpu_operators(reporter, *device, options);
  if (resume_from) append(notes, resumed_lines(*resume_from, options.steps));
  for (const std::string& note : notes) reporter.info(note);
  guard.reset();
  const ExitCode code = train_and_report(session, run, state, reporter, mfu);
  guard.emplace(session, options, StageGuard::end_after(state.step));
  guard->beat(ranges::Phase::kLog);
  agree(session.communicator(), [&] { reporter.finish(code, state); });
  return code;
}

}  // namespace sidestream::launch
