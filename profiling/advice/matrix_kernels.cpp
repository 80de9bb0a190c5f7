#include "profiling/advice/matrix_kernels.hpp"

#include <algorithm>
#include <string>

#include "profiling/advice/ncu_csv.hpp"

namespace sidestream::advice {

bool is_matrix_kernel(std::string_view kernel) {
  const std::string function = function_of(std::string(kernel));
  const bool named =
      std::any_of(kMatrixKernelWords.begin(), kMatrixKernelWords.end(),
                  [&](std::string_view word) { return function.find(word) != std::string::npos; });
  // Of cutlass the function is "Kernel2"; its namespace says it.
  return named ||
         kernel.substr(0, kernel.find_first_of("<(")).find("cutlass::") != std::string_view::npos;
}

}  // namespace sidestream::advice
