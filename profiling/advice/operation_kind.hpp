// What kind of work an operation is, from its name, and what its FLOPs were computed on, from the
// shapes and types of a report.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace sidestream::advice {

bool is_copy(const std::string& name);
bool is_phase(const std::string& name);
bool is_collective(const std::string& name);  // a kernel of NCCL or RCCL, or a range of ours
// An operator of that kind, or a kernel of matrix_kernels.hpp.
bool is_product(const std::string& name);
// An operator beside the products of a transformer that passes over memory of its own, where a
// fused one does its work on the way: activations, norms, softmax.
bool is_fusible(std::string_view name);

// What an operation of `top_ops` computed with.
struct ComputedOn {
  // "fp32", "tf32", "bf16", "fp16", "fp64": of most of its FLOPs, from the types of the inputs,
  // else from the name of the kernel, or the precision of the run where the name leaves two to
  // choose from; empty when none tells.
  std::string dtype = {};
  double unaligned_share = 0;  // of its FLOPs, in products with an extent that is no multiple of 8
  std::string unaligned_shapes = {};  // the most of them
};
// `precision`: what the run was asked to train in; empty: not known.
ComputedOn computed_on(const nlohmann::ordered_json& operation, const std::string& precision);

}  // namespace sidestream::advice
