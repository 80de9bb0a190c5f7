#include "profiling/advice/matrix_kernels.hpp"

#include <string>

#include "profiling/advice/name_words.hpp"
#include "profiling/advice/ncu_csv.hpp"

namespace sidestream::advice {

bool is_matrix_kernel(std::string_view kernel) {
  const std::string function = function_of(std::string(kernel));
  const bool named = has_any(function, kProductWords) || has_any(function, kConvolutionWords);
  // Of cutlass the function is "Kernel2"; its namespace says it, cutlass__5x_cudnn too.
  return named ||
         kernel.substr(0, kernel.find_first_of("<(")).find("cutlass") != std::string_view::npos;
}

bool is_convolution_kernel(std::string_view kernel) {
  return is_matrix_kernel(kernel) && has_any(kernel, kConvolutionWords);
}

}  // namespace sidestream::advice
