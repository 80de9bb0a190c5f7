// What Sidestream's fused operators (model/fused) do besides their products: bias, GELU, loss.
//
// Their products may be calls of aten::mm inside, which count themselves. The time that these leave
// goes into what is counted here.
#pragma once

#include <optional>
#include <string_view>

#include "profiling/analysis/operator_inputs.hpp"

namespace sidestream::analysis {

struct BesideProducts {
  double flops = 0;
  double bytes = 0;  // at least; 0: the type is not known
};

// Nothing for other operators, and where the shapes do not fit.
std::optional<BesideProducts> work_beside_products(std::string_view name, const OperatorInputs& in);

}  // namespace sidestream::analysis
