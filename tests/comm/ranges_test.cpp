// Every collective is one range with its bucket, sequence number and bytes: in flight, whoever
// drives it; a barrier on the thread that waits.
#include <gmock/gmock.h>

#include "tests/comm/communicator_fixture.hpp"
#include "tests/profiling/nvtx_listener.hpp"

namespace sidestream::test {
namespace {

using core::DType;
using ::testing::ElementsAre;
using ::testing::StartsWith;

TEST(CommRangesTest, collectives_areRanges) {
  const auto communicator = make_host_communicator(true);
  std::vector<float> values(300, 1.0F);
  std::vector<float> gathered(600);
  communicator->barrier();  // the first range registers every name
  take_nvtx_events();

  communicator->all_reduce(values.data(), 300, DType::kFloat32, {.bucket = 4}).wait();
  communicator->all_gather(values.data(), gathered.data(), 300, DType::kFloat32).wait();
  communicator->barrier();

  EXPECT_THAT(take_nvtx_events(),
              ElementsAre("start allreduce payload 4 2 1200", StartsWith("end "),
                          "start all_gather payload -1 3 1200", StartsWith("end "),
                          "push barrier payload -1 4 0", "pop"));
}

}  // namespace
}  // namespace sidestream::test
