// Where a run stands, beside its tensors: what a checkpoint's manifest stores.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/optim/gradient_scaler.hpp"

namespace sidestream::launch {

struct TrainingState {
  std::int64_t step = 0;               // steps taken
  std::uint64_t samples = 0;           // samples taken from the order by all ranks
  std::uint64_t samples_per_step = 0;  // B G R of the run that saved
  std::uint64_t sequence_length = 0;   // tokens of a sample; 0: not known
  double training_s = 0;               // time in the steps so far
  double rolled_back_s = 0;            // and in those that an anomaly has taken back
  std::int64_t skipped = 0;            // of the steps, those without an update
  // The last losses and gradient norms, oldest first: what spikes are judged by.
  std::vector<double> recent_losses = {};
  std::vector<double> recent_norms = {};
  std::vector<std::string> bucket_order = {};
  // Of fp16; the updates that it has left out are not among `skipped`.
  std::optional<optim::LossScaleState> loss_scale = {};
  std::string algorithm = {};   // of the optimizer; empty: not known
  nlohmann::json program = {};  // what a program of one's own keeps; null: nothing

  // For time to train: steps that were taken back have cost theirs.
  double spent_s() const { return training_s + rolled_back_s; }
};

// Of the optimizer that a manifest's training state is of; empty: an older one, which does not say.
std::string algorithm_of(const nlohmann::json& training);

nlohmann::json to_json(const TrainingState& state);

// Throws CheckpointError naming the field.
TrainingState training_state_from(const nlohmann::json& json);

}  // namespace sidestream::launch
