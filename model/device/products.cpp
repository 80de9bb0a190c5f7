#include "model/device/products.hpp"

#include "model/device/geometry.hpp"

namespace sidestream::model::device {
namespace {

using torch::Tensor;

constexpr std::int64_t kElements = 8;  // of 16 bits: 16 bytes, as cublasLt's fast kernels load

bool has_16_bits(const Tensor& tensor) {
  return tensor.scalar_type() == at::kBFloat16 || tensor.scalar_type() == at::kHalf;
}

bool is_row_major(const Tensor& matrix) {
  return matrix.dim() == 2 && matrix.numel() > 0 && matrix.stride(1) == 1 &&
         matrix.stride(0) >= matrix.size(1) && matrix.stride(0) % kElements == 0 &&
         begins_a_chunk(matrix.const_data_ptr());
}

}  // namespace

bool Products::take_with_bias(const Tensor& x_rc, const LinearWeights& weights) {
  const Tensor& weight_ch = weights.weight;
  return has_16_bits(x_rc) && weight_ch.scalar_type() == x_rc.scalar_type() &&
         weight_ch.is_contiguous() && weight_ch.size(0) % kElements == 0 &&
         weight_ch.size(1) % kElements == 0 && begins_a_chunk(weight_ch.const_data_ptr()) &&
         begins_a_chunk(x_rc.const_data_ptr()) && begins_a_chunk(weights.bias.const_data_ptr());
}

bool Products::take_plain(const Tensor& left, const Tensor& right, const Tensor& out) {
  const at::ScalarType type = left.scalar_type();
  return has_16_bits(left) && right.scalar_type() == type &&
         (out.scalar_type() == type || out.scalar_type() == at::kFloat) && is_row_major(out) &&
         (is_row_major(left) || is_row_major(left.t())) &&
         (is_row_major(right) || is_row_major(right.t()));
}

}  // namespace sidestream::model::device
