// Sums of columns in fp32, over rows that come in order. Those of a few hundred rows are added to
// the rest once they are whole: in one running sum of many rows of one sign each row is rounded to
// the digits of all rows before it. Where a sum is cut goes by the number of the row alone, so no
// bit depends on threads or tiles.
#pragma once

#include <algorithm>
#include <cstdint>

#include <torch/types.h>

#include "model/fused/block_product.hpp"
#include "model/fused/product.hpp"
#include "model/kernels/epilogue.hpp"
#include "model/kernels/pack.hpp"

namespace sidestream::model::fused {

class ColumnSums {
 public:
  static constexpr std::int64_t kRowsPerSum = 256;

  ColumnSums(std::int64_t rows, std::int64_t columns)
      : rows_(rows),
        part_(at::zeros({columns}, at::kFloat)),
        sums_(at::zeros({columns}, at::kFloat)) {}

  // Calls add_to(row, rows, sums) for one run of these rows after the other, which adds its rows to
  // the sums of these columns. A column belongs to one thread, and all its rows come once, in
  // order.
  template <typename AddTo>
  void add(TilePlace at, const kernels::MatrixShape& shape, AddTo&& add_to) const {
    const std::int64_t end = at.row + shape.rows;
    for (std::int64_t row = at.row; row < end;) {
      const std::int64_t next = std::min(end, (row / kRowsPerSum + 1) * kRowsPerSum);
      add_to(row, next - row, data_of<float>(part_) + at.column);
      if (next % kRowsPerSum == 0 || next == rows_) close(at.column, shape.columns);
      row = next;
    }
  }

  const torch::Tensor& sums() const noexcept { return sums_; }  // [columns]

 private:
  void close(std::int64_t column, std::int64_t columns) const {
    float* part = data_of<float>(part_) + column;
    kernels::add_column_sums(kernels::Rows<const float>{part, columns}, 1, columns,
                             data_of<float>(sums_) + column);
    std::fill_n(part, columns, 0.0f);
  }

  std::int64_t rows_;
  torch::Tensor part_, sums_;
};

}  // namespace sidestream::model::fused
