#include "launch/trainer/checkpointer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/warning.hpp"
#include "core/checkpoint/checkpoint_writer.hpp"
#include "core/checkpoint/model_fields.hpp"
#include "core/checkpoint/tensor_assignment.hpp"
#include "core/checkpoint/tensor_set.hpp"
#include "launch/process/agreement.hpp"
#include "launch/trainer/snapshot.hpp"
#include "profiling/ranges/background_range.hpp"
#include "profiling/ranges/ranges.hpp"

namespace sidestream::launch {

using Clock = std::chrono::steady_clock;

struct Checkpointer::Job {
  Job(const CheckpointerConfig& wanted, int of_rank, int of_ranks)
      : config(wanted), store(wanted.folder), rank(of_rank), ranks(of_ranks) {}

  const CheckpointerConfig config;
  const checkpoint::CheckpointStore store;
  const int rank;
  const int ranks;
  Snapshot weights;    // rank 0 only
  Snapshot constants;  // rank 0 only
  Snapshot moments;
  TrainingState state;
  std::vector<std::string> digests;  // before the commit: this rank's; then everybody's
  Clock::time_point begin;
  double stall_s = 0;

  void write_files();
  void commit() const;
};

namespace {

// A sign of life while a stage of a save is at work.
class SaveMark {
 public:
  SaveMark(Heartbeat& heartbeat, std::int64_t step) : heartbeat_(heartbeat) {
    heartbeat_.note_save(std::max<std::int64_t>(1, step));
  }
  ~SaveMark() { heartbeat_.note_save(0); }
  SaveMark(const SaveMark&) = delete;
  SaveMark& operator=(const SaveMark&) = delete;

 private:
  Heartbeat& heartbeat_;
};

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

std::uint64_t bytes_of(const std::vector<NamedTensor>& tensors) {
  std::uint64_t bytes = 0;
  for (const NamedTensor& named : tensors) bytes += named.tensor.nbytes();
  return bytes;
}

// The moments that this rank writes: rank 0 fewer, for it writes the weights.
std::vector<NamedTensor> share_of(int rank, int ranks, const std::vector<NamedTensor>& moments,
                                  std::uint64_t weight_bytes) {
  std::vector<std::uint64_t> bytes;
  for (const NamedTensor& moment : moments) bytes.push_back(moment.tensor.nbytes());
  const std::vector<int> assigned = checkpoint::assign_tensors(bytes, ranks, weight_bytes);
  std::vector<NamedTensor> mine;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    if (assigned[i] == rank) mine.push_back(moments[i]);
  }
  return mine;
}

std::int64_t left_out_of(const TrainingState& state) {
  return state.loss_scale ? static_cast<std::int64_t>(state.loss_scale->left_out) : 0;
}

// Of weights or of moments: a parameter may be called as another one's moment is stored.
using TensorsByName = std::unordered_map<std::string, torch::Tensor>;

TensorsByName by_name(const std::vector<NamedTensor>& tensors) {
  TensorsByName found;
  for (const NamedTensor& named : tensors) found[named.name] = named.tensor;
  return found;
}

void read_all(const checkpoint::TensorSet& files, const std::vector<NamedTensor>& targets) {
  for (const NamedTensor& target : targets) copy_into(files.at(target.name), target);
}

}  // namespace

void Checkpointer::Job::write_files() {
  const ranges::BackgroundRange range(ranges::kCheckpointWriting);
  const SaveMark mark(*config.heartbeat, state.step);
  weights.require_finite(state.step);
  constants.require_no_nan(state.step);
  moments.require_finite(state.step);
  config.faults->pass(faults::Point::kCheckpoint, state.step);
  checkpoint::CheckpointWriter writer(store.pending_folder(state.step));
  if (rank == 0) {
    std::vector<NamedTensor> model = weights.tensors();
    model.insert(model.end(), constants.tensors().begin(), constants.tensors().end());
    // transformers refuses a file whose metadata does not name the framework that laid the tensors
    // out.
    writer.add_safetensors("model.safetensors", sources_of(model), {{"format", "pt"}});
    config.model->add_files(writer);
  }
  writer.add_safetensors(checkpoint::optimizer_file_name(rank, ranks),
                         sources_of(moments.tensors()));
  digests = {checkpoint::digests_to_text(writer.files())};
}

void Checkpointer::Job::commit() const {
  const ranges::BackgroundRange range(ranges::kCheckpointWriting);
  const SaveMark mark(*config.heartbeat, state.step);
  config.faults->pass(faults::Point::kCommit, state.step);
  checkpoint::Manifest manifest{.step = state.step,
                                .world_size = ranks,
                                .model = config.model->identity(),
                                .training = to_json(state)};
  for (const std::string& text : digests) {
    const auto files = checkpoint::digests_from_text(text);
    manifest.files.insert(manifest.files.end(), files.begin(), files.end());
  }
  store.commit(manifest, core::print_warning);
  store.prune(config.keep, state.step, core::print_warning);
}

Checkpointer::Checkpointer(const CheckpointerConfig& config, comm::Communicator& communicator,
                           parallel::DataParallel& replicas)
    : config_(config),
      store_(config.folder),
      communicator_(communicator),
      replicas_(replicas),
      job_(std::make_shared<Job>(config, communicator.rank(), communicator.size())) {
  if (!config.model) throw core::Error("A Checkpointer was made without a model.");
}

void Checkpointer::agree_in_time(const std::function<void()>& work) const {
  agree(communicator_, work,
        {.deadline = config_.deadline,
         .deadline_flag = config_.deadline_flag,
         .purpose = "checkpoint outcomes"});
}

// A save that failed leaves nothing behind.
void Checkpointer::agree_or_abandon(const std::function<void()>& work) {
  try {
    agree_in_time(work);
  } catch (const core::AgreedError&) {
    stage_ = Stage::kNone;
    if (communicator_.rank() == 0) store_.abandon(job_->state.step);
    throw;
  }
}

std::vector<SavedCheckpoint> Checkpointer::save(const TrainingState& state, Meanwhile meanwhile) {
  if (config_.mode == SaveMode::kBlocking) meanwhile = Meanwhile::kWaiting;
  const ranges::ScopedRange range(ranges::Phase::kCheckpoint);
  std::vector<SavedCheckpoint> saved;
  const auto note = [&](std::optional<SavedCheckpoint> one) {
    if (one) saved.push_back(std::move(*one));
  };
  const auto begin = Clock::now();
  note(finish());  // one at a time
  task_.finish();  // of prepare()
  job_->state = state;
  job_->state.algorithm = parallel::name_of(replicas_.config().optimizer.algorithm);
  job_->begin = begin;
  if (config_.hold_folder) agree_in_time(config_.hold_folder);  // nothing of another run is removed
  agree_or_abandon([&] {
    if (communicator_.rank() == 0) store_.begin(state.step);
    take_snapshot(*job_, meanwhile);
  });
  if (replicas_.shards_state()) gather_snapshot(*job_);
  stage_ = Stage::kWriting;
  task_.start([job = job_] { job->write_files(); });
  if (meanwhile == Meanwhile::kWaiting) note(finish());
  job_->stall_s = seconds_since(begin);
  if (!saved.empty() && saved.back().state.step == state.step) saved.back().stall_s = job_->stall_s;
  return saved;
}

std::vector<NamedTensor> Checkpointer::moments_of_this_rank(
    const std::vector<parallel::ParameterState>& states,
    const std::vector<NamedTensor>& weights) const {
  return share_of(job_->rank, job_->ranks, moments_of(states, *config_.model), bytes_of(weights));
}

// Without that memory the save itself will say so, on all ranks.
void Checkpointer::prepare() {
  if (config_.mode == SaveMode::kBlocking) return;
  const auto states = replicas_.states();
  const std::vector<NamedTensor> weights = weights_of(states, *config_.model);
  task_.start([job = job_, weights, moments = moments_of_this_rank(states, weights)] {
    try {
      if (job->rank == 0) job->weights.reserve(weights);
      job->moments.reserve(moments);
    } catch (const std::exception&) {
    }
  });
}

// What is borrowed lives as long as the job, even where a hanging write outlives the run. Of
// sharded state, this makes the places only, so that nothing fails while the ranks gather.
void Checkpointer::take_snapshot(Job& job, Meanwhile meanwhile) const {
  auto take = meanwhile == Meanwhile::kWaiting ? &Snapshot::borrow : &Snapshot::take;
  if (job.rank == 0) (job.constants.*take)(config_.model->constants());
  if (replicas_.shards_state()) take = &Snapshot::reserve;
  const auto states = replicas_.states();
  const std::vector<NamedTensor> weights = weights_of(states, *config_.model);
  if (job.rank == 0) (job.weights.*take)(weights);
  (job.moments.*take)(moments_of_this_rank(states, weights));
}

void Checkpointer::gather_snapshot(const Job& job) const {
  const TensorsByName weights = by_name(job.weights.tensors());
  const TensorsByName moments = by_name(job.moments.tensors());
  replicas_.gather_states([&](const std::string& kind, const std::string& parameter) {
    const TensorsByName& places = kind.empty() ? weights : moments;
    const auto found = places.find(stored_name(kind, parameter));
    return found == places.end() ? torch::Tensor() : found->second;
  });
}

// Of state that the ranks keep in slices: a tensor at a time. Null: moments stay as they are.
void Checkpointer::load_slices(const checkpoint::TensorSet& weights,
                               const checkpoint::TensorSet* moments) const {
  const auto states = replicas_.states();
  const TensorsByName weight_shapes = by_name(weights_of(states, *config_.model));
  const TensorsByName moment_shapes = by_name(moments_of(states, *config_.model));
  replicas_.load_states([&](const std::string& kind, const std::string& parameter) {
    const checkpoint::TensorSet* files = kind.empty() ? &weights : moments;
    if (files == nullptr) return torch::Tensor();
    const std::string name = stored_name(kind, parameter);
    const torch::Tensor& shape = (kind.empty() ? weight_shapes : moment_shapes).at(name);
    const NamedTensor target{name, torch::empty(shape.sizes(), torch::dtype(shape.dtype()))};
    copy_into(files->at(name), target);
    return target.tensor;
  });
}

std::optional<SavedCheckpoint> Checkpointer::advance() {
  if (stage_ == Stage::kNone) return std::nullopt;
  const auto begin = Clock::now();
  agree_or_abandon([&] { task_.finish(); });
  if (stage_ == Stage::kWriting) {
    start_commit();
    job_->stall_s += seconds_since(begin);
    return std::nullopt;
  }
  stage_ = Stage::kNone;
  job_->stall_s += seconds_since(begin);
  return SavedCheckpoint{
      .state = job_->state, .stall_s = job_->stall_s, .total_s = seconds_since(job_->begin)};
}

void Checkpointer::start_commit() {
  job_->digests =
      communicator_.exchange(job_->digests.front(), {.deadline = config_.deadline,
                                                     .deadline_flag = config_.deadline_flag,
                                                     .purpose = "checkpoint digests"});
  stage_ = Stage::kCommitting;
  if (communicator_.rank() == 0) task_.start([job = job_] { job->commit(); });
}

std::optional<SavedCheckpoint> Checkpointer::finish() {
  std::optional<SavedCheckpoint> saved;
  while (stage_ != Stage::kNone && !saved) saved = advance();
  return saved;
}

// One that is whole and wants its name only is worth a moment.
void Checkpointer::leave_save() noexcept {
  constexpr std::chrono::seconds kToCommit{2};
  task_.leave(stage_ == Stage::kCommitting ? kToCommit : std::chrono::seconds(0));
}

// Another type than before is the user's choice, and one way of it loses digits.
void Checkpointer::note_type_of_moments(const checkpoint::TensorSet& files,
                                        std::vector<std::string>& notes) const {
  const auto moments = moments_of(replicas_.states(), *config_.model);
  if (moments.empty()) return;
  const bool were_narrow = type_of_moments(files, moments) == core::DType::kBFloat16;
  const bool are_narrow = moments.front().tensor.scalar_type() == torch::kBFloat16;
  if (were_narrow == are_narrow) return;
  notes.push_back(
      fmt::format("the checkpoint has the optimizer's state in {}, and this run keeps it in {}: {}",
                  were_narrow ? "bf16" : "fp32", are_narrow ? "bf16" : "fp32",
                  are_narrow ? "rounded to nearest even" : "widened, which changes no number"));
}

// As before the first step, which another optimizer may take than the one that was saved.
void Checkpointer::clear_moments() const {
  const torch::NoGradGuard no_grad;
  const auto states = replicas_.states();
  if (!replicas_.shards_state()) {
    for (const NamedTensor& moment : moments_of(states, *config_.model)) moment.tensor.zero_();
    return;
  }
  const TensorsByName shapes = by_name(moments_of(states, *config_.model));
  replicas_.load_states([&](const std::string& kind, const std::string& parameter) {
    if (kind.empty()) return torch::Tensor();
    const torch::Tensor& shape = shapes.at(stored_name(kind, parameter));
    return torch::zeros(shape.sizes(), torch::dtype(shape.dtype()));
  });
}

void Checkpointer::load(const checkpoint::TensorSet& weights,
                        const checkpoint::TensorSet* moments) const {
  read_all(weights, config_.model->constants());
  if (replicas_.shards_state()) return load_slices(weights, moments);
  const auto states = replicas_.states();
  read_all(weights, weights_of(states, *config_.model));
  if (moments != nullptr) read_all(*moments, moments_of(states, *config_.model));
}

// Without a loss scale, steps that it has left out are steps without an update like any other.
void Checkpointer::restore_loss_scale(TrainingState& state) const {
  if (!replicas_.loss_scale().defined()) {
    state.skipped += left_out_of(state);
    state.loss_scale.reset();
    return;
  }
  optim::LossScaleState scale = replicas_.loss_scale_state();
  scale.left_out = scale.good_steps = 0;
  replicas_.restore_loss_scale(state.loss_scale.value_or(scale));
}

TrainingState Checkpointer::restore(const checkpoint::Checkpoint& checkpoint,
                                    std::vector<std::string>& notes, Buckets buckets) const {
  TrainingState state;
  agree_in_time([&] {
    checkpoint::require_same_model(checkpoint.manifest.model, config_.model->identity(),
                                   checkpoint.folder);
    state = training_state_from(checkpoint.manifest.training);
    const std::int64_t left_out = left_out_of(state);
    if (state.step != checkpoint.manifest.step || state.skipped > state.step ||
        left_out > state.step - state.skipped)
      throw core::CheckpointError(fmt::format(
          "{}: expected a training state of step {}, found step {} with {} skipped and {} left out",
          checkpoint.folder.string(), checkpoint.manifest.step, state.step, state.skipped,
          left_out));
    const auto weights = checkpoint::TensorSet::open_model(checkpoint);
    std::optional<checkpoint::TensorSet> moments;
    if (state.step > 0) moments = checkpoint::TensorSet::open_optimizer(checkpoint);
    if (moments) note_type_of_moments(*moments, notes);
    load(weights, moments ? &*moments : nullptr);
    if (!moments && replicas_.steps_taken() > 0) clear_moments();
  });
  replicas_.refresh_parameters();
  restore_loss_scale(state);
  replicas_.set_steps_taken(state.step - state.skipped);
  if (buckets == Buckets::kFromCheckpoint && !state.bucket_order.empty())
    replicas_.set_bucket_order(state.bucket_order);
  return state;
}

void Checkpointer::load_weights(const std::filesystem::path& folder) const {
  agree_in_time([&] {
    config_.model->require_fits(folder);
    load(checkpoint::TensorSet::open_model(folder), nullptr);
  });
  replicas_.refresh_parameters();
}

}  // namespace sidestream::launch
