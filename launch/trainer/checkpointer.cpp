#include "launch/trainer/checkpointer.hpp"

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/checkpoint/checkpoint_writer.hpp"
#include "core/checkpoint/tensor_assignment.hpp"
#include "core/checkpoint/tensor_set.hpp"
#include "launch/process/agreement.hpp"
#include "launch/trainer/checkpoint_tensors.hpp"
#include "launch/trainer/model_folder.hpp"
#include "model/hugging_face.hpp"
#include "profiling/ranges/ranges.hpp"

namespace sidestream::launch {
namespace {

// The moments that this rank writes.
std::vector<NamedTensor> my_share(const std::vector<NamedTensor>& moments,
                                  const comm::Communicator& communicator) {
  std::vector<std::uint64_t> bytes;
  for (const NamedTensor& moment : moments) bytes.push_back(moment.tensor.nbytes());
  const std::vector<int> ranks = checkpoint::assign_tensors(bytes, communicator.size());
  std::vector<NamedTensor> mine;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    if (ranks[i] == communicator.rank()) mine.push_back(moments[i]);
  }
  return mine;
}

void read_all(const checkpoint::TensorSet& files, const std::vector<NamedTensor>& targets) {
  for (const NamedTensor& target : targets) copy_into(files.at(target.name), target);
}

}  // namespace

void Checkpointer::agree_in_time(const std::function<void()>& work) const {
  agree(communicator_, work, {.deadline = config_.deadline});
}

void Checkpointer::write_files(const TrainingState& state, std::string& digests) const {
  checkpoint::CheckpointWriter writer(store_.pending_folder(state.step));
  const auto states = replicas_.states();
  const int rank = communicator_.rank();
  if (rank == 0) {
    const std::vector<NamedTensor> weights = on_host(weights_of(states, config_.model));
    // transformers refuses a file whose metadata does not name the framework that laid the tensors
    // out.
    writer.add_safetensors("model.safetensors", sources_of(weights), {{"format", "pt"}});
    writer.add_text("config.json", model::to_hugging_face(config_.model).dump(2) + "\n");
    if (!config_.tokenizer.empty()) writer.add_copy("tokenizer.json", config_.tokenizer);
  }
  const std::vector<NamedTensor> moments =
      on_host(my_share(moments_of(states, config_.model), communicator_));
  writer.add_safetensors(checkpoint::optimizer_file_name(rank, communicator_.size()),
                         sources_of(moments));
  digests = checkpoint::digests_to_text(writer.files());
}

void Checkpointer::commit(const TrainingState& state,
                          const std::vector<std::string>& digests) const {
  checkpoint::Manifest manifest{.step = state.step,
                                .world_size = communicator_.size(),
                                .model = identity_of(config_.model),
                                .training = to_json(state)};
  for (const std::string& text : digests) {
    const auto files = checkpoint::digests_from_text(text);
    manifest.files.insert(manifest.files.end(), files.begin(), files.end());
  }
  store_.commit(manifest);
  store_.prune(config_.keep, state.step);
}

void Checkpointer::save(const TrainingState& state) const {
  const ranges::ScopedRange range(ranges::Phase::kCheckpoint);
  const bool first = communicator_.rank() == 0;
  try {
    agree_in_time([&] {
      if (first) store_.begin(state.step);
    });
    std::string digests;
    agree_in_time([&] { write_files(state, digests); });
    const std::vector<std::string> all_digests = communicator_.exchange(digests);
    agree_in_time([&] {
      if (first) commit(state, all_digests);
    });
  } catch (const AgreedError&) {
    if (first) store_.abandon(state.step);
    throw;
  }
}

TrainingState Checkpointer::restore(const checkpoint::Checkpoint& checkpoint) const {
  TrainingState state;
  agree_in_time([&] {
    require_same_model(checkpoint, config_.model);
    state = training_state_from(checkpoint.manifest.training);
    const auto states = replicas_.states();
    read_all(checkpoint::TensorSet::open_model(checkpoint.folder),
             weights_of(states, config_.model));
    if (state.step > 0)
      read_all(checkpoint::TensorSet::open_optimizer(checkpoint),
               moments_of(states, config_.model));
  });
  replicas_.refresh_parameters();
  replicas_.set_steps_taken(state.step);
  if (!state.bucket_order.empty()) replicas_.set_bucket_order(state.bucket_order);
  return state;
}

void Checkpointer::load_weights(const std::filesystem::path& folder) const {
  agree_in_time([&] {
    model::check_same_architecture(config_.model, read_model_config(folder));
    read_all(checkpoint::TensorSet::open_model(folder),
             weights_of(replicas_.states(), config_.model));
  });
  replicas_.refresh_parameters();
}

}  // namespace sidestream::launch
