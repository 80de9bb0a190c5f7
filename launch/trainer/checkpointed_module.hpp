// Checkpoints of a module of which names, shapes and types are all that is known.
#pragma once

#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "launch/trainer/checkpointed_model.hpp"
#include "parallel/data_parallel.hpp"

namespace sidestream::launch {

class CheckpointedModule final : public CheckpointedModel {
 public:
  // Throws CheckpointError naming a tensor whose name another one has, or whose type no file has.
  CheckpointedModule(const torch::nn::Module& module, const parallel::DataParallel& replicas);

  nlohmann::json identity() const override { return identity_; }
  std::int64_t stored_rows(const std::string&, std::int64_t rows) const override { return rows; }
  // Truth values as bytes: the format's own type for them is none that a checkpoint has.
  std::vector<NamedTensor> constants() const override;

 private:
  nlohmann::json identity_;
  std::vector<NamedTensor> constants_;
};

}  // namespace sidestream::launch
