#include "model/operators.hpp"

#include "model/plain_operators.hpp"

namespace sidestream::model {

std::unique_ptr<Operators> make_operators(FusedOps fused_ops) {
  return std::make_unique<PlainOperators>();
}

}  // namespace sidestream::model
