#include "parallel/memory_plan.hpp"

#include <fmt/format.h>

#include <functional>
#include <numeric>

#include "core/base/error.hpp"
#include "parallel/bucket_size.hpp"
#include "parallel/own_ranges.hpp"
#include "parallel/state_slices.hpp"

namespace sidestream::parallel {
std::size_t ParameterShape::elements() const {
  return std::accumulate(sizes.begin(), sizes.end(), std::size_t{1},
                         [](std::size_t product, std::int64_t size) {
                           return product * static_cast<std::size_t>(size);
                         });
}

int moments_per_parameter(const OptimizerConfig& config) {
  switch (config.algorithm) {
    case OptimizerAlgorithm::kAdamW:
      return 2;
    case OptimizerAlgorithm::kSgd:
      return config.momentum == 0 ? 0 : 1;
  }
  throw core::ConfigError("--algorithm: expected adamw or sgd, found an unknown value.");
}

std::size_t flat_moment_bytes(const std::vector<std::size_t>& elements,
                              const OptimizerConfig& config) {
  return padded_bytes(elements, core::DType::kFloat32) / core::size_of(core::DType::kFloat32) *
         core::size_of(config.state_dtype);
}

namespace {

// Of state whose slices the ranks keep.
void count_slices(MemoryPlan& plan, const std::vector<std::size_t>& elements,
                  const DataParallelConfig& config) {
  const std::size_t whole = plan.total_bytes() - plan.parameter_bytes - plan.gradient_bytes;
  const std::size_t unpadded = plan.parameter_bytes + plan.gradient_bytes +
                               whole / static_cast<std::size_t>(plan.buckets.slices);
  const std::size_t own = own_elements(plan.buckets);
  const std::size_t moments = static_cast<std::size_t>(moments_per_parameter(config.optimizer));
  const std::size_t moment_bytes = own * core::size_of(config.optimizer.state_dtype);
  plan.parameter_bytes = plan.buckets.capacity_elements * core::size_of(config.parameter_dtype);
  plan.gradient_bytes = plan.buckets.capacity_elements * core::size_of(config.gradient_dtype());
  plan.master_bytes = plan.master_bytes == 0 ? 0 : own * sizeof(float);
  plan.moment_bytes = moment_bytes * moments;
  plan.padding_bytes = plan.total_bytes() - std::min(unpadded, plan.total_bytes());
  const std::size_t module_bytes =
      std::accumulate(elements.begin(), elements.end(), std::size_t{0}) * sizeof(float);
  // The weights move through the memory of the gradients, where they fit into it.
  const std::size_t weights_twice =
      plan.gradient_bytes < plan.parameter_bytes ? plan.parameter_bytes : 0;
  const std::size_t moved = std::max(plan.master_bytes, moments == 0 ? 0 : moment_bytes);
  plan.start_bytes = std::max(module_bytes + plan.parameter_bytes + plan.master_bytes,
                              plan.total_bytes() + std::max(moved, weights_twice));
  plan.shards_state = true;
}

// State in the host's memory, and what the device has of it while an update runs.
void move_state(MemoryPlan& plan, const DataParallelConfig& config, std::size_t elements) {
  const std::size_t moments = static_cast<std::size_t>(moments_per_parameter(config.optimizer)) *
                              core::size_of(config.optimizer.state_dtype);
  const std::size_t master = plan.master_bytes == 0 ? 0 : sizeof(float);
  plan.host_state_bytes = plan.master_bytes + plan.moment_bytes;
  if (plan.shards_state)
    plan.moving_host_bytes =
        std::max(plan.master_bytes, elements * core::size_of(config.optimizer.state_dtype));
  plan.stream_bytes = slice_buffer_bytes(elements, master + moments);
  plan.master_bytes = 0;
  plan.moment_bytes = 0;
}

}  // namespace

MemoryPlan plan_memory(const std::vector<ParameterShape>& parameters,
                       const DataParallelConfig& config, int ranks) {
  std::vector<std::size_t> elements;
  for (const ParameterShape& parameter : parameters) elements.push_back(parameter.elements());
  const std::size_t fp32_bytes = padded_bytes(elements, core::DType::kFloat32);

  MemoryPlan plan;
  plan.parameter_bytes = padded_bytes(elements, config.parameter_dtype);
  plan.master_bytes = config.parameter_dtype == core::DType::kFloat32 ? 0 : fp32_bytes;
  plan.gradient_bytes = padded_bytes(elements, config.gradient_dtype());
  plan.moment_bytes = flat_moment_bytes(elements, config.optimizer) *
                      static_cast<std::size_t>(moments_per_parameter(config.optimizer));
  const bool shards = config.state_sharing == StateSharing::kSharded && ranks > 1;
  plan.shares_state = config.state_sharing != StateSharing::kOff && ranks > 1 && !shards &&
                      config.optimizer.kernel == OptimizerKernel::kFused;
  if (plan.shares_state) {
    for (std::size_t* bytes : {&plan.parameter_bytes, &plan.master_bytes, &plan.moment_bytes})
      *bytes /= static_cast<std::size_t>(ranks);
  }
  plan.buckets = make_bucket_plan(elements, reverse_order(elements.size()), config.gradient_dtype(),
                                  bucket_limits(config, plan.gradient_bytes, ranks,
                                                shards ? Slicing::kByRank : Slicing::kNone));
  if (shards) count_slices(plan, elements, config);
  if (config.grad_accumulation > 1 &&
      core::size_of(config.gradient_dtype()) < core::size_of(config.parameter_dtype))
    plan.unrounded_gradient_bytes = padded_bytes(elements, config.parameter_dtype);
  if (config.optimizer.state_residence == StateResidence::kDevice) return plan;
  move_state(plan, config, shards ? own_elements(plan.buckets) : fp32_bytes / sizeof(float));
  plan.start_bytes = fp32_bytes + plan.parameter_bytes;
  // Slices move on the host, and the weights twice where they do not fit into the gradients.
  if (shards && plan.gradient_bytes < plan.parameter_bytes)
    plan.start_bytes = std::max(plan.start_bytes, plan.total_bytes() + plan.parameter_bytes);
  return plan;
}

std::vector<std::string> describe(const BucketPlan& plan, const std::vector<std::string>& names,
                                  core::DType dtype) {
  constexpr double kMebibyte = 1 << 20;
  std::vector<std::string> lines;
  for (const Bucket& bucket : plan.buckets) {
    const std::size_t count = bucket.parameters.size();
    const std::string& first = names.at(bucket.parameters.front());
    const std::string& last = names.at(bucket.parameters.back());
    lines.push_back(fmt::format(
        "bucket {}: {} parameter{}, {:.2f} MiB: {}", lines.size(), count, count == 1 ? "" : "s",
        static_cast<double>(bucket.elements * core::size_of(dtype)) / kMebibyte,
        count == 1 ? first : first + " .. " + last));
  }
  return lines;
}

}  // namespace sidestream::parallel
