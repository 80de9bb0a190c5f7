// Bytes and buckets of NCCL's kernels, from the ranges around their launch.
#include "profiling/trace/collective_link.hpp"

#include <gtest/gtest.h>

#include <string>

#include "profiling/trace/trace_set.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::trace {
namespace {

using test::complete_event;

std::string range(const std::string& name, int start_us, int length_us, int bucket) {
  return complete_event(
      "user_annotation", name, std::to_string(start_us), std::to_string(length_us),
      R"("bucket":)" + std::to_string(bucket) + R"(,"sequence":)" + std::to_string(40 + bucket) +
          R"(,"payload bytes":)" + std::to_string(1000 * bucket) + R"(,"Group size":2)");
}

std::string launch(const std::string& call, int time_us, int correlation) {
  return complete_event("cuda_runtime", call, std::to_string(time_us), "5",
                        R"("correlation":)" + std::to_string(correlation));
}

std::string kernel(const std::string& name, int time_us, int correlation) {
  return complete_event("kernel", name, std::to_string(time_us), "50",
                        R"("stream":9,"correlation":)" + std::to_string(correlation));
}

class CollectiveLinkTest : public ::testing::Test {
 protected:
  void load(std::initializer_list<std::string> events) {
    std::string text;
    for (const std::string& event : events) text += (text.empty() ? "" : ",") + event;
    const auto file = test::write_text(scratch_ / "rank-0.json", test::trace_of(text, 0, 2));
    set_ = load_traces(find_traces({file}), {.threads = 1});
  }

  // Of the kernel that starts then; null: nothing is known of it.
  const CollectiveDetail* detail_at(std::int64_t start_us) const {
    const RankTimeline& timeline = set_.timelines.at(0);
    for (std::size_t row = 0; row < timeline.size(); ++row) {
      if (timeline.kind(row) == Kind::kKernel && timeline.start_ns(row) == start_us * 1000)
        return timeline.collective(row);
    }
    ADD_FAILURE() << "no kernel at " << start_us;
    return nullptr;
  }

  core::ScratchFolder scratch_;
  TraceSet set_;
};

// Two collectives are queued before the first of them runs.
TEST_F(CollectiveLinkTest, a_kernel_gets_what_the_range_around_its_launch_says) {
  load({range("allreduce", 100, 250, 1), launch("cudaLaunchKernelExC", 110, 1),
        range("reduce_scatter", 120, 300, 2), launch("cudaLaunchKernelExC", 130, 2),
        kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage)", 300, 1),
        kernel("ncclDevKernel_ReduceScatter_Sum_f32_RING_LL", 360, 2)});

  for (const int bucket : {1, 2}) {
    const CollectiveDetail* detail = detail_at(bucket == 1 ? 300 : 360);
    ASSERT_NE(detail, nullptr) << bucket;
    EXPECT_EQ(detail->bucket, bucket);
    EXPECT_EQ(detail->bytes, 1000 * bucket);
    EXPECT_EQ(detail->sequence, 40 + bucket);
    EXPECT_EQ(detail->group_size, 2);
  }
}

TEST_F(CollectiveLinkTest, a_kernel_without_a_range_of_its_own_gets_nothing) {
  load({range("allreduce", 100, 50, 1),
        // The range has ended, another collective's is open, and a graph's ranges were at capture.
        launch("cudaLaunchKernel", 160, 1), kernel("ncclDevKernel_AllReduce", 200, 1),
        range("all_gather", 300, 100, 2), launch("cudaLaunchKernel", 310, 2),
        kernel("ncclDevKernel_AllReduce", 320, 2), range("allreduce", 500, 100, 3),
        launch("cudaGraphLaunch", 510, 3), kernel("ncclDevKernel_AllReduce", 520, 3)});

  for (const int start_us : {200, 320, 520}) EXPECT_EQ(detail_at(start_us), nullptr) << start_us;
}

}  // namespace
}  // namespace sidestream::trace
