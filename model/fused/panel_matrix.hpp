// A matrix between two products, laid out as they write and read it fastest.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include <torch/types.h>

#include "model/fused/product.hpp"

namespace sidestream::model::fused {

template <typename T>
struct PanelMatrix {
  torch::Tensor storage;  // [panels, rows, width]; [rows, columns] where all lie side by side
  std::int64_t rows = 0, columns = 0;
  Panels panels;

  // Over what empty_panels() made for this many rows and columns.
  PanelMatrix(torch::Tensor memory, std::int64_t row_count, std::int64_t column_count)
      : storage(std::move(memory)), rows(row_count), columns(column_count) {
    if (storage.dim() == 3) panels = {.width = storage.size(2), .step = rows * storage.size(2)};
  }

  kernels::Rows<T> rows_at(TilePlace at) const {
    return {data_of<T>(storage) + at.row * stride() + panels.offset(at.column), stride()};
  }

  LeftFactor<T> left(Orientation orientation = Orientation::kAsIs) const {
    return {.data = data_of<T>(storage),
            .stride = stride(),
            .orientation = orientation,
            .panels = panels};
  }
  RightFactor<T> right() const {
    return {.data = data_of<T>(storage), .stride = stride(), .panels = panels};
  }

 private:
  std::int64_t stride() const { return panels.width == 0 ? columns : panels.width; }
};

// Not initialised.
template <typename T>
PanelMatrix<T> empty_panels(std::int64_t rows, std::int64_t columns,
                            const at::TensorOptions& options) {
  const std::int64_t width = best_panels<T>(rows, columns).width;
  torch::Tensor memory = width == 0
                             ? at::empty({rows, columns}, options)
                             : at::empty({(columns + width - 1) / width, rows, width}, options);
  return PanelMatrix<T>(std::move(memory), rows, columns);
}

// As the products of this thread write and read it: the width of panels goes by the threads of a
// product, and what forward keeps may meet another number of them in backward.
template <typename T>
PanelMatrix<T> as_products_lie(const PanelMatrix<T>& matrix) {
  if (matrix.panels.width == best_panels<T>(matrix.rows, matrix.columns).width) return matrix;
  const auto side_by_side = [](const PanelMatrix<T>& m, std::int64_t first, std::int64_t count) {
    return m.storage.dim() == 2
               ? m.storage.narrow(1, first, count)
               : m.storage[first / m.panels.width].narrow(1, first % m.panels.width, count);
  };
  PanelMatrix<T> result = empty_panels<T>(matrix.rows, matrix.columns, matrix.storage.options());
  constexpr std::int64_t kStep = 32;  // every width is a multiple of it
  for (std::int64_t first = 0; first < matrix.columns; first += kStep) {
    const std::int64_t count = std::min(kStep, matrix.columns - first);
    side_by_side(result, first, count).copy_(side_by_side(matrix, first, count));
  }
  return result;
}

}  // namespace sidestream::model::fused
