// What cublasLt is told of a product, read back from it. Needs no GPU: nothing is launched.
#include "model/device/cublaslt_call.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace sidestream::model::device {
namespace {

template <typename Value>
Value read(const LtDescription& description, cublasLtMatmulDescAttributes_t attribute) {
  Value value{};
  std::size_t bytes = 0;
  EXPECT_EQ(
      cublasLtMatmulDescGetAttribute(description.get(), attribute, &value, sizeof value, &bytes),
      CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(bytes, sizeof value);
  return value;
}

template <typename Value>
Value read(const LtLayout& layout, cublasLtMatrixLayoutAttribute_t attribute) {
  Value value{};
  std::size_t bytes = 0;
  EXPECT_EQ(cublasLtMatrixLayoutGetAttribute(layout.get(), attribute, &value, sizeof value, &bytes),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(bytes, sizeof value);
  return value;
}

alignas(16) char bias_memory[16], other_memory[16];

LtProduct sample() {
  return {.first = {.matrix = {.rows = 48, .columns = 24, .stride = 56}, .transposed = false},
          .second = {.matrix = {.rows = 32, .columns = 24, .stride = 40}, .transposed = true},
          .out = {.rows = 48, .columns = 32, .stride = 64}};
}

TEST(CublasLtCallTest, layout_has_extents_stride_and_type) {
  for (const auto& [dtype, type] :
       {std::pair(at::kFloat, CUDA_R_32F), {at::kHalf, CUDA_R_16F}, {at::kBFloat16, CUDA_R_16BF}}) {
    const LtLayout layout = layout_of({.dtype = dtype, .rows = 48, .columns = 24, .stride = 56});
    EXPECT_EQ(read<std::uint32_t>(layout, CUBLASLT_MATRIX_LAYOUT_TYPE),
              static_cast<std::uint32_t>(type));
    EXPECT_EQ(read<std::uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_ROWS), 48u);
    EXPECT_EQ(read<std::uint64_t>(layout, CUBLASLT_MATRIX_LAYOUT_COLS), 24u);
    EXPECT_EQ(read<std::int64_t>(layout, CUBLASLT_MATRIX_LAYOUT_LD), 56);
  }
  EXPECT_THROW(layout_of({.dtype = at::kDouble, .rows = 8, .columns = 8, .stride = 8}),
               std::exception);
}

TEST(CublasLtCallTest, description_has_operations_and_a_bias_where_there_is_one) {
  for (void* bias : {static_cast<void*>(nullptr), static_cast<void*>(bias_memory)}) {
    LtProduct product = sample();
    product.bias = bias;

    const LtDescription description = description_of(product);

    EXPECT_EQ(read<std::int32_t>(description, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE),
              CUBLAS_COMPUTE_32F);
    EXPECT_EQ(read<std::int32_t>(description, CUBLASLT_MATMUL_DESC_SCALE_TYPE), CUDA_R_32F);
    EXPECT_EQ(read<std::int32_t>(description, CUBLASLT_MATMUL_DESC_TRANSA), CUBLAS_OP_N);
    EXPECT_EQ(read<std::int32_t>(description, CUBLASLT_MATMUL_DESC_TRANSB), CUBLAS_OP_T);
    EXPECT_EQ(read<std::uint32_t>(description, CUBLASLT_MATMUL_DESC_EPILOGUE),
              static_cast<std::uint32_t>(bias == nullptr ? CUBLASLT_EPILOGUE_DEFAULT
                                                         : CUBLASLT_EPILOGUE_BIAS));
    EXPECT_EQ(read<void*>(description, CUBLASLT_MATMUL_DESC_BIAS_POINTER), bias);
  }
}

// Of what decides about algorithms; not of where anything lies.
TEST(CublasLtCallTest, key_differs_where_products_do) {
  const std::function<void(LtProduct&)> changes[] = {
      [](auto& p) { p.first.matrix.dtype = p.second.matrix.dtype = at::kHalf; },
      [](auto& p) { p.out.dtype = at::kFloat; },
      [](auto& p) { p.first.transposed = true; },
      [](auto& p) { p.second.transposed = false; },
      [](auto& p) { p.bias = bias_memory; },
      [](auto& p) { p.first.matrix.rows = p.out.rows = 40; },
      [](auto& p) { p.first.matrix.columns = p.second.matrix.columns = 16; },
      [](auto& p) { p.second.matrix.rows = p.out.columns = 24; },
      [](auto& p) { p.first.matrix.stride = 48; },
      [](auto& p) { p.second.matrix.stride = 32; },
      [](auto& p) { p.out.stride = 48; }};
  std::set<LtKey> keys = {key_of(sample(), 0), key_of(sample(), 1)};
  for (const auto& change : changes) {
    LtProduct product = sample();
    change(product);
    keys.insert(key_of(product, 0));
  }
  EXPECT_EQ(keys.size(), 2 + std::size(changes));

  LtProduct here = sample(), elsewhere = sample();
  here.bias = bias_memory;
  elsewhere.first.matrix.memory = elsewhere.bias = other_memory;
  EXPECT_EQ(key_of(elsewhere, 0), key_of(here, 0));
}

}  // namespace
}  // namespace sidestream::model::device
