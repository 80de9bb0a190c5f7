// What an operator had to compute and to move, from the shapes of its inputs.
//
// FLOPs are counted where the arithmetic is: matrix products (2 m n k), convolutions and attention,
// forward and backward, as torch.utils.flop_counter counts them (a multiplication and an addition
// are two; causal attention counts in full). Operators that only pass work on, such as
// aten::linear, count nothing, so that sums over a tree count nothing twice. Bytes are those of
// operator_bytes.hpp; views move nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "profiling/analysis/fused_work.hpp"

namespace sidestream::analysis {

// Texts as they stand in the trace. `values` is "Concrete Inputs": strides and paddings; empty when
// the profiler did not record them.
struct OperatorCall {
  std::string_view name;
  std::string_view shapes;
  std::string_view types;
  std::string_view values;
};

struct OperatorWork {
  std::optional<double> flops = {};
  std::optional<double> element_flops = {};  // of element_work.hpp, where there is no product
  std::optional<double> bytes = {};
  bool bytes_at_least = false;  // of its inputs only: the result is not known
  std::optional<BesideProducts> beside_products = {};  // of a fused operator: part of neither
};

// [rows, inner] x [inner, columns], so many times.
struct MatrixProduct {
  double batch = 1;
  std::int64_t rows = 0;
  std::int64_t inner = 0;
  std::int64_t columns = 0;
};

// Whether an operator is a matrix product, or a fused one around some.
bool is_matrix_product(std::string_view name);

// Its first one; nothing for other operators, and where the shapes do not fit.
std::optional<MatrixProduct> matrix_product_of(const OperatorCall& call);

// Nothing where the shapes are missing or are not what the operator takes.
OperatorWork work_of(const OperatorCall& call);

}  // namespace sidestream::analysis
