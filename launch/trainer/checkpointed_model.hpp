// What a checkpoint has to know of the module that it keeps: the trainer's language model, or one
// of a program of one's own.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <torch/types.h>

#include "core/checkpoint/checkpoint_writer.hpp"

namespace sidestream::launch {

// A view of memory with a name: valid as long as the tensor.
struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
};

class CheckpointedModel {
 public:
  virtual ~CheckpointedModel() = default;

  // The fields that two runs must share, for one to go on from what the other has saved.
  virtual nlohmann::json identity() const = 0;

  // Leading rows of a parameter that belong into a checkpoint; the rest only pads, and is zero.
  virtual std::int64_t stored_rows(const std::string& parameter, std::int64_t rows) const = 0;

  // What no optimizer updates, by name: rank 0 writes it beside the weights, each rank reads it.
  virtual std::vector<NamedTensor> constants() const { return {}; }

  // What else rank 0 writes; on a thread of its own. Throws CheckpointError.
  virtual void add_files(checkpoint::CheckpointWriter&) const {}

  // Throws CheckpointError where weights in this folder, which need not be a checkpoint, are not
  // this model's.
  virtual void require_fits(const std::filesystem::path&) const {}
};

}  // namespace sidestream::launch
