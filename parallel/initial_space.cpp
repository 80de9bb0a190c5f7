#include "parallel/initial_space.hpp"

#include <utility>
#include <vector>

#include "parallel/replica_agreement.hpp"

namespace sidestream::parallel {

BucketPlan plan_of(const DataParallelConfig& config, std::span<const std::size_t> elements,
                   std::span<const std::size_t> order, int ranks, Slicing slicing) {
  const core::DType dtype = config.gradient_dtype();
  return make_bucket_plan(elements, order, dtype,
                          bucket_limits(config, padded_bytes(elements, dtype), ranks, slicing));
}

ParameterSpace agreed_space(comm::Communicator& communicator, const torch::nn::Module& module,
                            const DataParallelConfig& config, const DeviceTools& tools) {
  std::vector<Parameter> parameters = agreed_parameters(communicator, module, config, tools.place);
  StateMemory memory(communicator, parameters, config, tools.copies_of_state(config.optimizer));
  if (!memory.is_sharded())
    return {std::move(parameters), config.parameter_dtype, std::move(memory)};
  broadcast_tensors(communicator, parameters, {.after = tools.current_stream()});
  std::vector<std::size_t> elements;
  for (const Parameter& parameter : parameters) elements.push_back(parameter.elements());
  BucketPlan plan = plan_of(config, elements, reverse_order(elements.size()), communicator.size(),
                            Slicing::kByRank);
  StateShards shards(communicator, std::move(plan), std::move(elements), tools.current_stream,
                     parameters.front().tensor.device());
  return {std::move(parameters), config.parameter_dtype, std::move(memory), std::move(shards)};
}

}  // namespace sidestream::parallel
