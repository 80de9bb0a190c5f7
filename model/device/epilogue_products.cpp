#include "model/device/epilogue_products.hpp"

#include "model/device/geometry.hpp"

namespace sidestream::model::device {

using torch::Tensor;

bool EpilogueProducts::take(const Tensor& x_rc, const Tensor& weight_ch) {
  constexpr std::int64_t kElements = 8;  // cublasLt.h, EPILOGUE_AUX_LD
  const at::ScalarType type = x_rc.scalar_type();
  return (type == at::kBFloat16 || type == at::kHalf) && weight_ch.scalar_type() == type &&
         weight_ch.is_contiguous() && weight_ch.size(0) % kElements == 0 &&
         weight_ch.size(1) % kElements == 0 && begins_a_chunk(weight_ch.const_data_ptr());
}

const EpilogueProducts* ChosenProducts::for_gelu(const Tensor& x, const Tensor& weight) const {
  return products && EpilogueProducts::take(x, weight) ? products.get() : nullptr;
}

const EpilogueProducts* ChosenProducts::for_bias(const Tensor& x, const Tensor& weight) const {
  return epilogues == Epilogues::kAll ? for_gelu(x, weight) : nullptr;
}

}  // namespace sidestream::model::device
