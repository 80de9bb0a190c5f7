#include "model/operators.hpp"

#include "model/device/device_operators.hpp"
#include "model/fused/fused_operators.hpp"
#include "model/plain_operators.hpp"

namespace sidestream::model {

std::unique_ptr<Operators> make_operators(const ModelConfig& config) {
  if (config.fused_ops == FusedOps::kOff) return std::make_unique<PlainOperators>();
  return std::make_unique<fused::FusedOperators>(device::make_device_operators(config));
}

}  // namespace sidestream::model
