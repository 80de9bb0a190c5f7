// "Input Dims" and "Concrete Inputs" of an operator, as PyTorch's profiler writes them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace sidestream::analysis {

using Dims = std::vector<std::int64_t>;

// One argument: a tensor has one entry, a list of tensors several. A scalar and a tensor without
// dimensions look alike: one entry without dimensions.
using ArgumentShapes = std::vector<Dims>;

// "[[64, 768], [[3], [4, 5]], []]": one entry for each argument. Empty for what is no such list.
std::vector<ArgumentShapes> parse_shapes(std::string_view text);

// Elements of a JSON list as raw text, quotes and surrounding blanks taken off: types, and concrete
// values such as "[1, 1]" or "False".
std::vector<std::string_view> list_elements(std::string_view text);

// "[1, 1]" as numbers; what is no number is left out.
Dims integers_in(std::string_view text);

// Product of the dimensions; 1 without any, 0 when one is negative.
double element_count(const Dims& dims);

}  // namespace sidestream::analysis
