#include "launch/assembly/live_run.hpp"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/write_error.hpp"
#include "core/checkpoint/run_directory.hpp"
#include "core/data/sample_order.hpp"
#include "launch/assembly/assembly.hpp"
#include "launch/assembly/offload_assembly.hpp"
#include "launch/assembly/rank_guard.hpp"
#include "launch/assembly/run_start.hpp"
#include "launch/assembly/stepper_assembly.hpp"
#include "launch/options/train_parser.hpp"
#include "launch/process/kept_memory.hpp"
#include "launch/process/tuning.hpp"
#include "launch/recording/phase_verdict.hpp"
#include "launch/trainer/agreed_checkpoint.hpp"
#include "launch/trainer/checkpointed_language_model.hpp"
#include "profiling/record/processor_wait.hpp"

namespace sidestream::launch {
namespace {

using core::ExitCode;

constexpr const char* kNoVerdictOnGpu =
    "what bounds a step: not known on a GPU without a profile, because phases say when work was "
    "queued and not when it ran: --profile active=3, then sidestream-trace report";

LoaderStart loader_start(const TrainingState& state, std::uint64_t samples_per_step) {
  if (state.samples == static_cast<std::uint64_t>(state.step) * samples_per_step) {
    return {.first_step = static_cast<std::uint64_t>(state.step) + 1};
  }
  // Another global batch before, or batches left out by a rollback: go on in the order where it
  // stopped.
  return {.first_step = 1, .first_sample = state.samples};
}

// Samples of another sequence length are other samples: the run goes on behind the same tokens.
void keep_place_in_data(TrainingState& state, const DataSources& sources,
                        const TrainOptions& options, std::vector<std::string>& notes) {
  const auto length = static_cast<std::uint64_t>(sequence_length(options));
  const std::uint64_t before = std::exchange(state.sequence_length, length);
  const bool is_of_tokens = options.data.source != "synthetic" && !options.data.fix_batch;
  if (before == 0 || before == length || !is_of_tokens) return;
  state.samples = data::taken_with_another_length(
      state.samples, {.sequence_length = before, .samples = sources.train->count(before)},
      {.sequence_length = length, .samples = sources.train->count(length)});
  notes.push_back(fmt::format(
      "other than in the run so far: samples of {} tokens instead of {}: the run goes on behind as "
      "many tokens, with sample {}{}",
      length, before, state.samples,
      options.data.shuffle ? "; samples of this length come in an order of their own, so that some "
                             "tokens of this epoch come twice and others not at all"
                           : ""));
}

}  // namespace

LiveRun::LiveRun(Session& session, const TrainOptions& options, const DataSources& sources,
                 const DeviceSession& device, std::function<void()> hold,
                 std::shared_ptr<faults::FaultInjector> faults)
    : session_(session),
      options_(options),
      heartbeat_(std::make_shared<Heartbeat>(session.communicator())),
      faults_(std::move(faults)),
      judge_(std::make_shared<AnomalyJudge>(options.numerics)),
      sources_(sources),
      device_(device),
      hold_(std::move(hold)),
      model_(model::make_language_model(options.model.config)),
      replicas_(initialised(), session.communicator(), data_parallel_config(options)),
      checkpointer_(checkpointer_config(), session.communicator(), replicas_) {
  model_->write_gradients_into(
      {.lend = replicas_.gradient_memory(), .take_over = replicas_.gradient_taking()});
  model_->expect_loss_scale(replicas_.loss_scale());
  // A captured step ends with all of its weights in place.
  if (replicas_.shards_state() && !options.cuda_graph)
    model_->wait_for_weights(replicas_.weight_arrival());
  offload_residuals(*model_, options, device);
}

TrainingState LiveRun::restore(const std::optional<checkpoint::Checkpoint>& checkpoint,
                               const std::filesystem::path& initial_weights,
                               std::vector<std::string>& notes) {
  const auto begin = std::chrono::steady_clock::now();
  TrainingState state;
  if (checkpoint) {
    faults_->pass(faults::Point::kRestore, 0);
    state = checkpointer_.restore(*checkpoint, notes);
  } else if (!initial_weights.empty()) {
    checkpointer_.load_weights(initial_weights);
  }
  replicas_.check_replicas();
  give_judge(state);
  keep_place_in_data(state, sources_, options_, notes);
  agree_on_setup(session_, options_, [&] { clear_way(state.step, notes); });
  if (checkpoint && state.samples_per_step != samples_per_step())
    notes.push_back(fmt::format(
        "other than in the run so far: {} samples a step instead of {} (--batch-size-per-rank x "
        "--grad-accumulation x ranks), which learn otherwise",
        samples_per_step(), state.samples_per_step));
  state.samples_per_step = samples_per_step();
  restore_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return state;
}

StopReason LiveRun::train(TrainingState& state, RunReporter& reporter, const Mfu& mfu) {
  const std::optional<Evaluator> evaluator = make_evaluator();
  RankGuard guard(session_, options_.timeouts, *heartbeat_, flight_folder(state.step));
  RunRecording recording(options_.record, {.communicator = session_.communicator(),
                                           .failure_hook = session_.failure_hook(),
                                           .on_request = [&] { guard.flight().answer_request(); },
                                           .dump_request = session_.dump_request(),
                                           .run_dir = options_.run_dir,
                                           .first_step = state.step + 1,
                                           .gpu_pci_bus = device_.pci_bus(),
                                           .figures = figures_of(mfu),
                                           .say = [&](const auto& line) { reporter.info(line); }});
  reporter.started(state, restore_s_);
  tell_what_is_left_out(reporter);
  if (options_.checkpoint.saves_between(state.step, options_.steps)) checkpointer_.prepare();
  // From here on: what building the replicas freed has gone back to the system.
  if (options_.keep_memory) keep_freed_memory();
  const record::ProcessorWait wait;
  try {
    StopReason reason = train_on(state, evaluator, reporter, recording);
    while (reason == StopReason::kRollback) {
      go_back(state, reporter);
      recording.went_back(state.step);
      reason = train_on(state, evaluator, reporter, recording);
    }
    recording.finish();
    if (device_.on_gpu()) reporter.info(kNoVerdictOnGpu);
    reporter.verdict(verdict(wait.share()));
    return reason;
  } catch (const core::AgreedError& error) {
    heartbeat_->rest();  // what is written down now has deadlines of its own
    finish_save_after(error, reporter);
    leave_records(recording, reporter);
    throw;
  } catch (const std::exception& error) {
    heartbeat_->rest();
    // Peers first: records take seconds on a file system that does not answer.
    session_.communicator().announce_failure(error.what());
    checkpointer_.leave_save();
    guard.note_failure(error.what());
    leave_records(recording, reporter);
    throw;
  }
}

// Who asks for it should not think that it is done.
void LiveRun::tell_what_is_left_out(RunReporter& reporter) const {
  if (!sources_.validation && options_.evaluation.every > 0)
    reporter.info("--eval-every: synthetic data has no validation split, nothing is evaluated");
  if (options_.comm.nccl.is_tuned() && !session_.communicator().backend_name().starts_with("nccl"))
    reporter.info("--nccl-ctas: no gradients travel over NCCL here, it changes nothing");
  if (options_.cuda_graph && options_.record.profile)
    reporter.info(
        "--cuda-graph: steps of the profile run without it, for a replayed step shows no "
        "operators; launch/nsys-collect shows its kernels");
  const bool is_asked_for = options_.numerics.drift_every != TrainOptions{}.numerics.drift_every &&
                            options_.numerics.drift_every > 0;
  if (is_asked_for && replicas_.shards_state())
    reporter.info(
        "--drift-every: after every update the ranks take each slice of the weights from the rank "
        "that keeps it, so that what is compared has had no time to drift; --zero 0 lets every "
        "rank update its own");
  if (!is_asked_for || !replicas_.shares_weights()) return;
  reporter.info(
      "--drift-every: the ranks keep the weights once, in shared memory, so that there is nothing "
      "to compare; --zero 0 gives each rank its own");
}

// Of a run that has failed: other ranks may be gone, and nothing is asked of them.
void LiveRun::leave_records(RunRecording& recording, RunReporter& reporter) const {
  recording.dump_now("the run has failed");
  if (device_.on_gpu()) return;
  reporter.verdict(
      verdict_of_rank_alone(session_.communicator().rank(), record::process_recorder()));
}

model::LanguageModel& LiveRun::initialised() {
  model_->initialise(options_.seed);
  model_->to(device_.device());
  return *model_;
}

// All ranks end the run together, but not because of a save: one that is under way is of good
// steps. Where it fails too, the first failure is what they end with.
void LiveRun::finish_save_after(const core::AgreedError& error, RunReporter& reporter) {
  if (error.code() != ExitCode::kNumerics) return;
  const auto warn = [&](const core::Error& second) {
    reporter.info(fmt::format("warning: of the save that was under way: {}", second.what()));
  };
  try {
    if (const auto saved = checkpointer_.finish()) reporter.saved(*saved);
  } catch (const core::AgreedError& second) {
    warn(second);
  } catch (const core::WriteError& second) {  // on rank 0, which tells of the save
    warn(second);
  }
}

// From where the state is; the order of samples goes on where it stopped.
StopReason LiveRun::train_on(TrainingState& state, const std::optional<Evaluator>& evaluator,
                             RunReporter& reporter, RunRecording& recording) {
  const auto loader =
      make_loader(sources_, options_, session_.communicator().topology(),
                  loader_start(state, samples_per_step()), loader_memory(options_, device_));
  const auto steps = make_stepper({.model = *model_,
                                   .replicas = replicas_,
                                   .loader = *loader,
                                   .communicator = session_.communicator(),
                                   .first_step = state.step + 1},
                                  {.seed = options_.seed,
                                   .grad_accumulation = options_.parallel.grad_accumulation,
                                   .sequence_length = sequence_length(options_),
                                   .schedule = schedule_config(options_),
                                   .loss_scale = data_parallel_config(options_).loss_scale,
                                   .faults = faults_,
                                   .save_stage_done = [this] { return checkpointer_.stage_done(); },
                                   .heartbeat = heartbeat_,
                                   .judge = judge_},
                                  options_, device_);
  Trainer trainer(options_, session_,
                  {.model = *model_,
                   .replicas = replicas_,
                   .steps = *steps,
                   .evaluator = evaluator ? &*evaluator : nullptr,
                   .checkpointer = checkpointer_,
                   .reporter = reporter,
                   .recording = recording,
                   .faults = *faults_,
                   .heartbeat = *heartbeat_,
                   .judge = *judge_,
                   .order = loader->order()},
                  state);
  const StopReason reason = trainer.run();
  if (const auto use = steps->graph_use()) reporter.graph_used(*use);
  return reason;
}

// After an anomaly: weights of the newest checkpoint, and the batches after the one that did it.
void LiveRun::go_back(TrainingState& state, RunReporter& reporter) {
  heartbeat_->beat(ranges::Phase::kCheckpoint, state.step);
  if (const auto saved = checkpointer_.finish()) reporter.saved(*saved);
  agree_on_setup(session_, options_, hold_);  // another run's checkpoints are none of this one
  TrainOptions newest = options_;
  newest.checkpoint.resume = "auto";
  std::vector<std::string> notes;
  const auto checkpoint = checkpoint_to_resume(session_, newest, notes);
  const std::int64_t bad_step = state.step;
  state.step -= 1;  // for the record of a run that ends here
  if (!checkpoint) {
    throw core::AgreedError(
        fmt::format("step {}: there is no checkpoint to go back to: --checkpoint-every STEPS "
                    "makes them. Weights were not changed",
                    bad_step),
        ExitCode::kNumerics);
  }
  count_rollback(checkpoint->manifest.step, bad_step);
  const std::uint64_t samples = state.samples;
  const double spent_s = state.spent_s();
  state = checkpointer_.restore(*checkpoint, notes, Checkpointer::Buckets::kAsTheyAre);
  state.samples = samples;
  state.rolled_back_s = spent_s - state.training_s;
  state.samples_per_step = samples_per_step();
  state.sequence_length = static_cast<std::uint64_t>(sequence_length(options_));
  give_judge(state);
  for (const std::string& note : notes) reporter.info(note);
  reporter.info(fmt::format("step {}: back to step {}, and on with the batches that come next",
                            bad_step, state.step));
  reporter.rewind(state);
}

void LiveRun::count_rollback(std::int64_t to_step, std::int64_t bad_step) {
  rollbacks_ = to_step == rollback_to_ ? rollbacks_ + 1 : 1;
  rollback_to_ = to_step;
  if (rollbacks_ <= options_.numerics.max_skipped_steps) return;
  throw core::AgreedError(
      fmt::format("step {}: more than {} rollbacks to step {} (--max-skipped-steps): the batches "
                  "are not what is wrong",
                  bad_step, options_.numerics.max_skipped_steps, to_step),
      ExitCode::kNumerics);
}

void LiveRun::give_judge(const TrainingState& state) {
  judge_->losses().restore(state.recent_losses);
  judge_->norms().restore(state.recent_norms);
}

// What a run that died left behind goes; checkpoints of steps that are now taken again make room.
void LiveRun::clear_way(std::int64_t step, std::vector<std::string>& notes) const {
  if (!session_.is_first_rank()) return;
  const checkpoint::CheckpointStore store(checkpoint::RunPaths(options_.run_dir).checkpoints());
  store.remove_leftovers([&](const std::string& problem) { notes.push_back(problem); });
  for (const auto& folder : store.set_aside_after(step))
    notes.push_back(set_aside_text(folder, step));
}

CheckpointerConfig LiveRun::checkpointer_config() const {
  return {.folder = checkpoint::RunPaths(options_.run_dir).checkpoints(),
          .hold_folder = hold_,
          .keep = options_.checkpoint.keep,
          .model = std::make_shared<CheckpointedLanguageModel>(
              options_.model.config, sources_.tokenizer, sources_.end_of_text),
          .deadline = options_.timeouts.checkpoint,
          .mode = options_.checkpoint.asynchronous ? SaveMode::kAsynchronous : SaveMode::kBlocking,
          .faults = faults_,
          .heartbeat = heartbeat_};
}

// What readers of the traces cannot see.
trace::RunFigures LiveRun::figures_of(const Mfu& mfu) const {
  return {.flops_per_token = mfu.flops_per_token().causal,
          .flops_per_token_palm = mfu.flops_per_token().palm,
          .tokens_per_step =
              static_cast<double>(tokens_per_step(options_, session_.communicator().size())),
          .peak_flops_per_s = mfu.peak_flops_per_s().value_or(0)};
}

// Phases of a GPU rank say when work was queued, not when it ran: there they give no verdict.
std::optional<record::RunVerdict> LiveRun::verdict(std::optional<double> processor_wait) {
  if (device_.on_gpu()) return std::nullopt;
  return verdict_of_all_ranks(session_.communicator(), record::process_recorder(), processor_wait);
}

// One a start: what the start before has left is still to be read.
std::filesystem::path LiveRun::flight_folder(std::int64_t step) const {
  return checkpoint::RunPaths(options_.run_dir).flight() / fmt::format("from_step_{:08}", step);
}

std::uint64_t LiveRun::samples_per_step() const {
  return static_cast<std::uint64_t>(tokens_per_step(options_, session_.communicator().size()) /
                                    sequence_length(options_));
}

std::optional<Evaluator> LiveRun::make_evaluator() const {
  if (!sources_.validation || options_.evaluation.every == 0) return std::nullopt;
  return Evaluator(*sources_.validation, {.tokens = options_.evaluation.tokens,
                                          .sequence_length = sequence_length(options_),
                                          .batch_size_per_rank = options_.data.batch_size_per_rank,
                                          .device = device_.device(),
                                          .deadline = options_.timeouts.evaluation});
}

}  // namespace sidestream::launch
