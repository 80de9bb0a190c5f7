#include "model/fused/block_product.hpp"

#include <ATen/native/CPUBlas.h>

namespace sidestream::model::fused {

using core::BFloat16;
namespace cpublas = at::native::cpublas;

void multiply(const BlockProduct<float>& p) {
  cpublas::brgemm(p.m, p.n, p.k, p.a_stride, p.b_stride, p.c_stride,
                  p.accumulate == Accumulate::kYes, p.a, p.b, p.c, false);
}

void multiply(const BlockProduct<BFloat16>& p) {
  cpublas::brgemm(p.m, p.n, p.k, p.a_stride, p.b_stride, p.c_stride,
                  p.accumulate == Accumulate::kYes, reinterpret_cast<const at::BFloat16*>(p.a),
                  reinterpret_cast<const at::BFloat16*>(p.b), p.c, true);
}

template <>
void release_products<float>() {
  cpublas::brgemm_release(false);
}

template <>
void release_products<BFloat16>() {
  cpublas::brgemm_release(true);
}

namespace {

// [2, 2] = [[1, 2], [3, 4]] x 2 I.
template <typename T>
bool small_product_is_right() {
  const T a[4] = {T(1), T(2), T(3), T(4)};
  const T panel_f32[4] = {T(2), T(0), T(0), T(2)};
  float c[4] = {};
  multiply(BlockProduct<T>{.m = 2,
                           .n = 2,
                           .k = 2,
                           .a = a,
                           .a_stride = 2,
                           .b = panel_f32,
                           .b_stride = 2,
                           .c = c,
                           .c_stride = 2});
  release_products<T>();
  return c[0] == 2 && c[1] == 4 && c[2] == 6 && c[3] == 8;
}

}  // namespace

bool products_supported(at::ScalarType dtype) {
  if (dtype != at::kFloat && dtype != at::kBFloat16) return false;
  try {
    return dtype == at::kFloat ? small_product_is_right<float>()
                               : small_product_is_right<BFloat16>();
  } catch (const c10::Error&) {
    return false;  // LibTorch says so by throwing
  }
}

}  // namespace sidestream::model::fused
