#include "launch/trainer/snapshot.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/base/error.hpp"

namespace sidestream::launch {
namespace {

TEST(SnapshotTest, take_copiesIntoTheSameMemory) {
  const torch::Tensor weight = torch::arange(6, torch::kFloat32).view({2, 3});
  Snapshot snapshot;

  snapshot.take({{"a", weight}});
  const void* memory = snapshot.tensors()[0].tensor.const_data_ptr();
  weight.add_(1);
  EXPECT_EQ(snapshot.tensors()[0].tensor[1][2].item<float>(), 5) << "not a copy";
  snapshot.take({{"a", weight}});

  EXPECT_EQ(snapshot.tensors()[0].tensor.const_data_ptr(), memory);
  EXPECT_EQ(snapshot.tensors()[0].tensor[1][2].item<float>(), 6);
}

TEST(SnapshotTest, reserve_isTheMemoryOfTheFirstCopy) {
  const torch::Tensor weight = torch::ones({3});
  Snapshot snapshot;

  snapshot.reserve({{"a", weight}});
  const void* memory = snapshot.tensors()[0].tensor.const_data_ptr();
  EXPECT_EQ(snapshot.tensors()[0].tensor[1].item<float>(), 0);
  snapshot.take({{"a", weight}});

  EXPECT_EQ(snapshot.tensors()[0].tensor.const_data_ptr(), memory);
  EXPECT_EQ(snapshot.tensors()[0].tensor[1].item<float>(), 1);
}

TEST(SnapshotTest, take_sliceBecomesContiguous) {
  Snapshot snapshot;
  snapshot.take({{"a", torch::arange(8, torch::kFloat32).view({4, 2}).slice(0, 0, 3)}});
  EXPECT_TRUE(snapshot.tensors()[0].tensor.is_contiguous());
  EXPECT_EQ(snapshot.tensors()[0].tensor.numel(), 6);
}

TEST(SnapshotTest, borrow_isNoCopy_andNoPlaceForTheNextOne) {
  const torch::Tensor weight = torch::ones({3});
  Snapshot snapshot;

  snapshot.take({{"a", weight}});
  snapshot.borrow({{"a", weight}});
  EXPECT_EQ(snapshot.tensors()[0].tensor.const_data_ptr(), weight.const_data_ptr());

  snapshot.take({{"a", weight}});
  weight.add_(1);
  EXPECT_EQ(snapshot.tensors()[0].tensor[1].item<float>(), 1) << "not a copy";
}

TEST(SnapshotTest, requireFinite_namesTheTensor) {
  Snapshot snapshot;
  const torch::Tensor bad = torch::zeros({5});
  snapshot.take({{"fine", torch::ones({3})}, {"bad", bad}});
  snapshot.require_finite(7);
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    bad[4] = value;
    snapshot.take({{"fine", torch::ones({3})}, {"bad", bad}});
    try {
      snapshot.require_finite(7);
      FAIL() << "no error";
    } catch (const core::NumericsError& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("step 7: not saved: bad holds values"));
    }
  }
}

TEST(SnapshotTest, bf16_staysBf16AndIsSearchedToo) {
  Snapshot snapshot;
  const torch::Tensor moment = torch::ones({3}, torch::kBFloat16);
  snapshot.take({{"a", torch::ones({3})}});  // memory of another type

  snapshot.take({{"a", moment}});
  EXPECT_EQ(snapshot.tensors()[0].tensor.scalar_type(), torch::kBFloat16);
  snapshot.require_finite(7);
  moment[1] = HUGE_VAL;
  snapshot.take({{"a", moment}});

  EXPECT_THROW(snapshot.require_finite(7), core::NumericsError);
}

}  // namespace
}  // namespace sidestream::launch
