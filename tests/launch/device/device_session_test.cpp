#include "launch/device/device_session.hpp"

#include <gtest/gtest.h>

#include <ATen/Context.h>

namespace sidestream::launch {
namespace {

TEST(DeviceSessionTest, products_add_their_parts_in_fp32) {
  using enum at::CuBLASReductionOption;
  for (const Precision precision : {Precision::kBf16, Precision::kFp16}) {
    at::globalContext().setAllowFP16ReductionCuBLAS(/*allow_reduced_precision=*/true);
    at::globalContext().setAllowBF16ReductionCuBLAS(/*allow_reduced_precision=*/true);

    choose_products(precision);

    EXPECT_EQ(at::globalContext().allowFP16ReductionCuBLAS(), DisallowReducedPrecisionAllowSplitK);
    EXPECT_EQ(at::globalContext().allowBF16ReductionCuBLAS(), DisallowReducedPrecisionAllowSplitK);
  }
}

TEST(DeviceSessionTest, products_round_to_tf32_where_that_is_asked_for) {
  for (const Precision precision : {Precision::kTf32, Precision::kFp32}) {
    choose_products(precision);

    EXPECT_EQ(at::globalContext().allowTF32CuBLAS(), precision == Precision::kTf32);
  }
}

}  // namespace
}  // namespace sidestream::launch
