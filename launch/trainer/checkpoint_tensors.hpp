// Tensors of a training run as they stand in checkpoint files, and back.
//
// Files hold tensors by parameter name: weights in fp32 under the name itself, moments under
// "exp_avg.NAME" and so on in the type that they have. Rows that only pad are zero and not stored.
// So no number depends on layout or padding.
#pragma once

#include <string>
#include <vector>

#include "core/checkpoint/safetensors_reader.hpp"
#include "core/checkpoint/safetensors_writer.hpp"
#include "core/checkpoint/tensor_set.hpp"
#include "launch/trainer/checkpointed_model.hpp"
#include "parallel/data_parallel.hpp"

namespace sidestream::launch {

std::vector<NamedTensor> weights_of(const std::vector<parallel::ParameterState>& states,
                                    const CheckpointedModel& model);
std::vector<NamedTensor> moments_of(const std::vector<parallel::ParameterState>& states,
                                    const CheckpointedModel& model);

// The type that a file has it in. Throws CheckpointError naming a tensor of another one.
core::DType stored_type_of(const NamedTensor& named);

// Of a kind of state, as parallel::StatePlace has it.
std::string stored_name(const std::string& kind, const std::string& parameter);

// The same tensors in host memory, contiguous: themselves where they are so already.
std::vector<NamedTensor> on_host(std::vector<NamedTensor> tensors);

// For write_safetensors; they must be in host memory, and `tensors` must outlive the result. Throws
// CheckpointError naming one of a type that no file of ours has.
std::vector<checkpoint::TensorSource> sources_of(const std::vector<NamedTensor>& tensors);

// The type in which a checkpoint keeps these moments. Throws CheckpointError naming file and tensor
// where one is missing, has another type than the first one, or one that moments never have.
core::DType type_of_moments(const checkpoint::TensorSet& files,
                            const std::vector<NamedTensor>& moments);

// Copies a stored tensor into `target`, which has its shape; bf16 and fp16 files are widened, and
// for a target in bf16 what is wider is rounded to nearest even. Other numbers than those are
// stored as they are. Throws CheckpointError naming file, tensor, expected and found shape or type.
void copy_into(const checkpoint::TensorView& stored, const NamedTensor& target);

}  // namespace sidestream::launch
