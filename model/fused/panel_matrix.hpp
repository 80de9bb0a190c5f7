// A matrix between two products, laid out as they write and read it fastest.
#pragma once

#include <cstdint>

#include <torch/torch.h>

#include "model/fused/product.hpp"

namespace sidestream::model::fused {

template <typename T>
struct PanelMatrix {
  torch::Tensor storage;  // [panels, rows, width]; [rows, columns] where all lie side by side
  std::int64_t rows = 0, columns = 0;
  Panels panels;

  // Over what empty_panels() made for this many rows and columns.
  PanelMatrix(torch::Tensor memory, std::int64_t row_count, std::int64_t column_count)
      : storage(std::move(memory)),
        rows(row_count),
        columns(column_count),
        panels(best_panels<T>(rows, columns)) {}

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

}  // namespace sidestream::model::fused
