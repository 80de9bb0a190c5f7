#include "parallel/step_update.hpp"

#include "parallel/device_update.hpp"
#include "parallel/host_update.hpp"
#include "parallel/operator_update.hpp"

namespace sidestream::parallel {

std::unique_ptr<StepUpdate> make_step_update(const DataParallelConfig& config,
                                             ParameterSpace& parameters,
                                             const GradientSpace& gradients,
                                             const DeviceTools& tools) {
  if (tools.kernels == nullptr) return std::make_unique<HostUpdate>(config, parameters, gradients);
  if (config.optimizer.kernel == OptimizerKernel::kFused)
    return std::make_unique<DeviceUpdate>(config, parameters, gradients, tools);
  return std::make_unique<OperatorUpdate>(config, parameters, gradients, tools);
}

}  // namespace sidestream::parallel
