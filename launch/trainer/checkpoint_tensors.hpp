// Tensors of a training run as they stand in checkpoint files, and back.
//
// Files hold tensors by parameter name: weights in fp32 under the name itself, moments under
// "exp_avg.NAME" and so on in the type that they have. Rows that only pad the vocabulary are zero
// and not stored. So no number depends on layout or padding.
#pragma once

#include <string>
#include <vector>

#include "core/checkpoint/safetensors_reader.hpp"
#include "core/checkpoint/safetensors_writer.hpp"
#include "core/checkpoint/tensor_set.hpp"
#include "model/config.hpp"
#include "parallel/data_parallel.hpp"

namespace sidestream::launch {

// A view of fp32 or bf16 memory with a name: valid as long as the tensor.
struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
};

std::vector<NamedTensor> weights_of(const std::vector<parallel::ParameterState>& states,
                                    const model::ModelConfig& config);
std::vector<NamedTensor> moments_of(const std::vector<parallel::ParameterState>& states,
                                    const model::ModelConfig& config);

// The same tensors in host memory: themselves where they are there already.
std::vector<NamedTensor> on_host(std::vector<NamedTensor> tensors);

// For write_safetensors; they must be in host memory, and `tensors` must outlive the result.
std::vector<checkpoint::TensorSource> sources_of(const std::vector<NamedTensor>& tensors);

// The type in which a checkpoint keeps these moments. Throws CheckpointError naming file and tensor
// where one is missing, has another type than the first one, or one that moments never have.
core::DType type_of_moments(const checkpoint::TensorSet& files,
                            const std::vector<NamedTensor>& moments);

// Copies a stored tensor into `target`, which has its shape; bf16 and fp16 files are widened, and
// for a target in bf16 what is wider is rounded to nearest even. Throws CheckpointError naming
// file, tensor, expected and found shape.
void copy_into(const checkpoint::TensorView& stored, const NamedTensor& target);

}  // namespace sidestream::launch
