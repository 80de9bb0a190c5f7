// Matrices for tests of kernels, and their product in double.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace sidestream::model::kernels {

template <typename T>
struct Matrix {
  Matrix(std::int64_t rows, std::int64_t columns, std::int64_t beside = 0)
      : stride(columns + beside), data(static_cast<std::size_t>(rows * stride), T(0.0f)) {}
  T& at(std::int64_t row, std::int64_t column) {
    return data[static_cast<std::size_t>(row * stride + column)];
  }
  std::int64_t stride;
  std::vector<T> data;
};

template <typename T>
Matrix<T> random(std::int64_t rows, std::int64_t columns, std::int64_t beside, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Matrix<T> matrix(rows, columns, beside);
  for (T& element : matrix.data) element = T(normal(generator));
  return matrix;
}

struct Exact {
  double sum = 0, magnitude = 0;
};

template <typename T>
Exact element_of_product(Matrix<T>& a, Matrix<T>& b, std::int64_t row, std::int64_t column,
                         std::int64_t k) {
  Exact exact;
  for (std::int64_t p = 0; p < k; ++p) {
    const double term = static_cast<double>(static_cast<float>(a.at(row, p))) *
                        static_cast<double>(static_cast<float>(b.at(p, column)));
    exact.sum += term;
    exact.magnitude += std::abs(term);
  }
  return exact;
}

}  // namespace sidestream::model::kernels
