#include "launch/assembly/training_run.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/error.hpp"
#include "core/checkpoint/run_directory.hpp"
#include "launch/assembly/assembly.hpp"
#include "launch/assembly/data_assembly.hpp"
#include "launch/assembly/dry_run.hpp"
#include "launch/assembly/run_start.hpp"
#include "launch/assembly/stepper_assembly.hpp"
#include "launch/device/device_session.hpp"
#include "launch/device/gpu_peak.hpp"
#include "launch/options/train_parser.hpp"
#include "launch/process/agreement.hpp"
#include "launch/process/tuning.hpp"
#include "launch/recording/phase_verdict.hpp"
#include "launch/recording/run_recording.hpp"
#include "launch/trainer/model_folder.hpp"
#include "launch/trainer/trainer.hpp"
#include "model/hugging_face.hpp"
#include "model/language_model.hpp"

namespace sidestream::launch {
namespace {

using core::ExitCode;

int set_up_process(const TrainOptions& options, comm::Communicator& communicator) {
  const int threads = pin_and_set_threads(communicator, options.threads);
  flush_denormals_on_all_threads(options.flush_denormals);
  at::globalContext().setDeterministicAlgorithms(options.deterministic, /*warn_only=*/false);
  return threads;
}

std::string name_of(Precision precision) {
  switch (precision) {
    case Precision::kTf32:
      return "tf32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp32:
      break;
  }
  return "fp32";
}

// Refused before anything large is allocated: a dry plan of weights, gradients and moments against
// what is free.
void require_device_memory(Session& session, const TrainOptions& options,
                           const DeviceSession& device) {
  agree_on_setup(session, options, [&] {
    device.require_memory(planned_device_bytes(options, session.communicator().size()));
  });
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
                      int threads, const std::string& command_line) {
  return {.command_line = command_line,
          .started_at = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
          .world_size = communicator.size(),
          .nodes = communicator.topology().node_count,
          .threads_per_rank = threads,
          .backend = std::string(communicator.backend_name()),
          .baseline = options.baseline,
          .precision = name_of(options.precision),
          .parameters = model::parameter_count(options.model.config)};
}

DataSources open_and_check_data(Session& session, TrainOptions& options) {
  DataSources sources;
  agree_on_setup(session, options, [&] {
    sources = open_data(options);
    set_vocabulary(options, sources.vocab_size);
    check_data(sources, options, session.communicator().topology());
  });
  return sources;
}

LoaderStart loader_start(const TrainingState& state, std::uint64_t samples_per_step) {
  if (state.samples == static_cast<std::uint64_t>(state.step) * samples_per_step) {
    return {.first_step = static_cast<std::uint64_t>(state.step) + 1};
  }
  // Another global batch before: go on in the order where it stopped.
  return {.first_step = 1, .first_sample = state.samples};
}

ExitCode exit_code_of(StopReason reason) {
  return reason == StopReason::kRequested ? ExitCode::kPreempted : ExitCode::kDone;
}

// Builds, restores, trains. Everything here has its data open and its run directory claimed.
class TrainingRun {
 public:
  TrainingRun(Session& session, const TrainOptions& options, const DataSources& sources,
              const DeviceSession& device)
      : session_(session),
        options_(options),
        sources_(sources),
        device_(device),
        model_(model::make_language_model(options.model.config)),
        replicas_(initialised(), session.communicator(), data_parallel_config(options)),
        checkpointer_(checkpointer_config(), session.communicator(), replicas_) {}

  TrainingState restore(const std::optional<checkpoint::Checkpoint>& checkpoint,
                        std::vector<std::string>& notes) {
    TrainingState state;
    if (checkpoint) {
      state = checkpointer_.restore(*checkpoint);
    } else if (!options_.model.init.empty()) {
      checkpointer_.load_weights(options_.model.init);
    }
    replicas_.check_replicas();
    agree_on_setup(session_, options_, [&] { clear_way(state.step, notes); });
    state.samples_per_step = samples_per_step();
    return state;
  }

  StopReason train(TrainingState& state, RunReporter& reporter, const Mfu& mfu) {
    const auto loader =
        make_loader(sources_, options_, session_.communicator().topology(),
                    loader_start(state, samples_per_step()), loader_memory(options_, device_));
    keep_freed_memory();  // from here on: what building the replicas freed has gone back to the
                          // system
    const auto steps = make_stepper({.model = *model_,
                                     .replicas = replicas_,
                                     .loader = *loader,
                                     .communicator = session_.communicator()},
                                    {.seed = options_.seed,
                                     .grad_accumulation = options_.parallel.grad_accumulation,
                                     .sequence_length = sequence_length(options_),
                                     .schedule = schedule_config(options_)},
                                    options_, device_);
    const std::optional<Evaluator> evaluator = make_evaluator();
    RunRecording recording(options_.record,
                           {.communicator = session_.communicator(),
                            .failure_hook = session_.failure_hook(),
                            .dump_request = session_.dump_request(),
                            .run_dir = options_.run_dir,
                            .first_step = state.step + 1,
                            .gpu = device_.on_gpu(),
                            .figures = figures_of(mfu),
                            .say = [&](const auto& line) { reporter.info(line); }});
    Trainer trainer(options_, session_,
                    {.model = *model_,
                     .replicas = replicas_,
                     .steps = *steps,
                     .evaluator = evaluator ? &*evaluator : nullptr,
                     .checkpointer = checkpointer_,
                     .reporter = reporter,
                     .recording = recording},
                    state);
    try {
      const StopReason reason = trainer.run();
      recording.finish();
      reporter.verdict(verdict_of_all_ranks());
      return reason;
    } catch (const std::exception&) {
      recording.dump_now("the run has failed");
      throw;
    }
  }

  std::vector<std::string> describe_buckets() const { return replicas_.describe_buckets(); }

 private:
  model::LanguageModel& initialised() {
    model_->initialise(options_.seed);
    model_->to(device_.device());
    return *model_;
  }

  // What a run that died left behind goes; checkpoints of steps that are now taken again make room.
  void clear_way(std::int64_t step, std::vector<std::string>& notes) const {
    if (!session_.is_first_rank()) return;
    const checkpoint::CheckpointStore store(checkpoint::RunPaths(options_.run_dir).checkpoints());
    store.remove_leftovers();
    for (const auto& folder : store.set_aside_after(step)) {
      notes.push_back(fmt::format(
          "set aside as {}: a checkpoint newer than step {}, from where training goes on",
          folder.string(), step));
    }
  }

  CheckpointerConfig checkpointer_config() const {
    return {.folder = checkpoint::RunPaths(options_.run_dir).checkpoints(),
            .tokenizer = sources_.tokenizer,
            .keep = options_.checkpoint.keep,
            .model = options_.model.config,
            .deadline = options_.timeouts.checkpoint};
  }

  // What readers of the traces cannot see.
  trace::RunFigures figures_of(const Mfu& mfu) const {
    return {.flops_per_token = mfu.flops_per_token().causal,
            .flops_per_token_palm = mfu.flops_per_token().palm,
            .tokens_per_step =
                static_cast<double>(tokens_per_step(options_, session_.communicator().size())),
            .peak_flops_per_s = mfu.peak_flops_per_s().value_or(0)};
  }

  // Phases of a GPU rank say when work was queued, not when it ran: there they give no verdict.
  std::optional<record::PhaseVerdict> verdict_of_all_ranks() {
    if (device_.on_gpu()) return std::nullopt;
    return agreed_verdict(session_.communicator(), record::process_recorder().totals());
  }

  std::uint64_t samples_per_step() const {
    return static_cast<std::uint64_t>(tokens_per_step(options_, session_.communicator().size()) /
                                      sequence_length(options_));
  }

  std::optional<Evaluator> make_evaluator() const {
    if (!sources_.validation || options_.evaluation.every == 0) return std::nullopt;
    return Evaluator(*sources_.validation,
                     {.tokens = options_.evaluation.tokens,
                      .sequence_length = sequence_length(options_),
                      .batch_size_per_rank = options_.data.batch_size_per_rank,
                      .device = device_.device(),
                      .deadline = options_.timeouts.evaluation});
  }

  Session& session_;
  const TrainOptions& options_;
  const DataSources& sources_;
  const DeviceSession& device_;
  std::shared_ptr<model::LanguageModel> model_;
  parallel::DataParallel replicas_;
  Checkpointer checkpointer_;
};

}  // namespace

core::ExitCode run_training(Session& session, TrainOptions options,
                            const std::string& command_line) {
  std::optional<DeviceSession> device;
  agree_on_setup(session, options, [&] { device.emplace(session.communicator(), options); });
  options.model.config.layer_ranges =
      options.ranges == Ranges::kLayers || options.record.wants_modules()
          ? model::LayerRanges::kOn
          : model::LayerRanges::kOff;
  agree_on_setup(session, options, [&] { check_recording(options.record); });
  const int threads = set_up_process(options, session.communicator());
  const DataSources sources = open_and_check_data(session, options);
  std::vector<std::string> notes;
  const auto resume_from = checkpoint_to_resume(session, options, notes);
  check_start(session, options, resume_from);
  require_device_memory(session, options, *device);
  const auto directory = claim_run_directory(session, options, resume_from, notes);

  TrainingRun run(session, options, sources, *device);
  TrainingState state = run.restore(resume_from, notes);
  const Mfu mfu = make_mfu(options, session.communicator(), *device);
  RunReporter reporter;
  const RunRecord record = make_record(options, session.communicator(), threads, command_line);
  agree_on_setup(session, options, [&] {
    if (!session.is_first_rank()) return;
    reporter = RunReporter(options, record, mfu, state, [&] {
      return device_memory_peak_bytes(device->device(), session.communicator());
    });
  });
  for (const std::string& note : notes) reporter.info(note);
  if (device->on_gpu() && options.model.config.family != "mlp") {
    reporter.info(fmt::format("{}: attention runs LibTorch's {} kernel", device->name(),
                              attention_kernel(device->device(), options)));
  }
  if (resume_from)
    reporter.info(
        fmt::format("resumed from {}, step {}", resume_from->folder.string(), state.step));
  ExitCode code = ExitCode::kOther;
  try {
    code = exit_code_of(run.train(state, reporter, mfu));
  } catch (const AgreedError& error) {
    reporter.finish_failed(error.code(), state);
    throw;
  } catch (const std::exception& error) {
    // Here, while the replicas still stand: what they say when they go down is less than the cause.
    session.communicator().announce_failure(error.what());
    const auto* own = dynamic_cast<const core::Error*>(&error);
    reporter.finish_failed(own != nullptr ? own->code() : ExitCode::kOther, state);
    throw;
  }
  agree(session.communicator(), [&] { reporter.finish(code, state); });
  return code;
}

}  // namespace sidestream::launch
