// The message about parameters that a step has left without a gradient.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "parallel/parameter_list.hpp"

namespace sidestream::parallel {

// missing: their numbers in registration order, at least one. Names the first of them.
std::string missing_gradients_text(const std::vector<Parameter>& parameters,
                                   const std::vector<std::size_t>& missing);

}  // namespace sidestream::parallel
