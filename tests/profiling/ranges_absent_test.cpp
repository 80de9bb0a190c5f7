// The same ranges in a build without NVTX: they compile and do nothing.
#include <gtest/gtest.h>

#include "profiling/ranges/ranges.hpp"

#if defined(SIDESTREAM_HAVE_NVTX)
#error "this test is about the build without NVTX"
#endif

namespace sidestream::ranges {
namespace {

TEST(RangesAbsentTest, everyRange_doesNothing) {
  const LayerName layer("transformer.h.0.attn");
  const StepRange step(1);
  const ScopedRange forward(Phase::kForward);
  const ScopedRange attention(layer);
  AsyncRange reduce(Phase::kAllReduce, {.bucket = 1, .sequence = 2, .bytes = 3});

  AsyncRange moved = std::move(reduce);
  moved.end();

  EXPECT_EQ(detail::start(detail::label_of(Phase::kData), nullptr), 0u);
}

}  // namespace
}  // namespace sidestream::ranges
