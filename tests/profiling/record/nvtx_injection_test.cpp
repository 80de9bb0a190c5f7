// The whole way: ranges of this program through NVTX into the recorder of the process.
#include <gtest/gtest.h>

#include <thread>

#include "profiling/ranges/ranges.hpp"
#include "profiling/record/process_recorder.hpp"

namespace sidestream::record {
namespace {

using ranges::Phase;

class NvtxInjectionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(process_recorder_is_attached());
    process_recorder().keep(Keeping::kOn);
  }
  void TearDown() override {
    process_recorder().take();
    process_recorder().keep(Keeping::kOff);
  }
};

TEST_F(NvtxInjectionTest, ranges_arrive) {
  const ranges::LayerName layer("transformer.h.3.mlp");
  {
    const ranges::StepRange step(12);
    const ranges::ScopedRange forward(Phase::kForward);
    const ranges::ScopedRange mlp(layer);
  }
  ranges::AsyncRange flight(Phase::kAllReduce, {.bucket = 3, .sequence = 41, .bytes = 4096});
  std::thread([&] { flight.end(); }).join();

  const Recording recording = process_recorder().take();

  const NameTable& names = process_recorder().names();
  ASSERT_EQ(recording.threads.size(), 1u);
  const auto& found = recording.threads[0].ranges;
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(names.text(found[0].name), "transformer.h.3.mlp");
  EXPECT_EQ(names.text(found[1].name), "forward");
  EXPECT_EQ(names.text(found[2].name), "ProfilerStep#12");
  ASSERT_EQ(recording.in_flight.size(), 1u);
  EXPECT_EQ(recording.in_flight[0].payload.bucket, 3);
  EXPECT_EQ(recording.in_flight[0].payload.bytes, 4096);
}

TEST_F(NvtxInjectionTest, foreignDomains_areNotKept) {
  const nvtxDomainHandle_t other = nvtxDomainCreateA("somebody else");
  nvtxEventAttributes_t attributes{};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = "theirs";
  nvtxDomainRangePushEx(other, &attributes);
  nvtxDomainRangePop(other);

  EXPECT_TRUE(process_recorder().take().threads.empty());
}

}  // namespace
}  // namespace sidestream::record
