// Saves and restores a training run, all ranks together.
//
// model.safetensors and config.json are what Hugging Face's transformers loads; the optimizer's
// tensors are shared out over the ranks. A failure on any rank is agreed: all ranks throw, the
// older checkpoints stay.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "core/checkpoint/checkpoint_store.hpp"
#include "launch/trainer/training_state.hpp"
#include "model/config.hpp"
#include "parallel/data_parallel.hpp"

namespace sidestream::launch {

struct CheckpointerConfig {
  std::filesystem::path folder = {};     // of the checkpoints
  std::filesystem::path tokenizer = {};  // copied beside the weights; empty: none
  int keep = 2;                          // 0: all
  model::ModelConfig model = {};
  std::chrono::milliseconds deadline{std::chrono::minutes(10)};  // of a save or restore
};

class Checkpointer {
 public:
  Checkpointer(const CheckpointerConfig& config, comm::Communicator& communicator,
               parallel::DataParallel& replicas)
      : config_(config), store_(config.folder), communicator_(communicator), replicas_(replicas) {}

  // Collective; blocks until the checkpoint is durable. Throws AgreedError.
  void save(const TrainingState& state) const;

  // Collective. Loads weights, moments and state from the checkpoint. Throws AgreedError; with
  // another model the message lists the fields.
  TrainingState restore(const checkpoint::Checkpoint& checkpoint) const;

  // Collective. Weights only, from a checkpoint of ours or a folder of Hugging Face. Throws
  // AgreedError.
  void load_weights(const std::filesystem::path& folder) const;

 private:
  void agree_in_time(const std::function<void()>& work) const;
  void write_files(const TrainingState& state, std::string& digests) const;
  void commit(const TrainingState& state, const std::vector<std::string>& digests) const;

  CheckpointerConfig config_;
  checkpoint::CheckpointStore store_;
  comm::Communicator& communicator_;
  parallel::DataParallel& replicas_;
};

}  // namespace sidestream::launch
