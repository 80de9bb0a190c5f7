// Ranges as a tool in this process sees them: names, nesting, payload, threads.
#include "profiling/ranges/ranges.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <set>
#include <thread>

#include "tests/profiling/nvtx_listener.hpp"

namespace sidestream::ranges {
namespace {

using test::take_nvtx_events;
using ::testing::Contains;
using ::testing::ElementsAre;

// What the first range of the process registers, whichever test comes first.
const std::vector<std::string>& registration_events() {
  static const std::vector<std::string> events = [] {
    { const ScopedRange first(Phase::kData); }
    return take_nvtx_events();
  }();
  return events;
}

class RangesTest : public ::testing::Test {
 protected:
  void SetUp() override { registration_events(); }
};

TEST_F(RangesTest, domain_andNamesAreRegisteredOnce) {
  EXPECT_THAT(registration_events(), Contains("domain sidestream"));
  for (const char* name : {"data", "h2d", "forward", "backward", "allreduce", "reduce_scatter",
                           "all_gather", "optimizer", "zero_grad", "checkpoint", "eval"}) {
    EXPECT_THAT(registration_events(), Contains("register " + std::string(name)));
  }

  { const ScopedRange again(Phase::kForward); }

  EXPECT_THAT(take_nvtx_events(), ElementsAre("push forward", "pop"));
}

TEST_F(RangesTest, scopes_nest) {
  const LayerName layer("transformer.h.3.mlp");
  take_nvtx_events();

  {
    const StepRange step(12);
    const ScopedRange forward(Phase::kForward);
    const ScopedRange mlp(layer);
  }

  EXPECT_THAT(take_nvtx_events(),
              ElementsAre("register ProfilerStep#12", "push ProfilerStep#12", "push forward",
                          "push transformer.h.3.mlp", "pop", "pop", "pop"));
}

TEST_F(RangesTest, payload_isCarried) {
  {
    const ScopedRange range(Phase::kReduceScatter, {.bucket = 3, .sequence = 41, .bytes = 1 << 20});
  }

  EXPECT_THAT(take_nvtx_events(), ElementsAre("push reduce_scatter payload 3 41 1048576", "pop"));
}

TEST_F(RangesTest, asyncRange_endsOnceAndOnAnyThread) {
  AsyncRange range(Phase::kAllReduce, {.bucket = -1, .sequence = 7, .bytes = 12});

  AsyncRange moved = std::move(range);
  std::thread([&moved] { moved.end(); }).join();
  range.end();  // NOLINT(bugprone-use-after-move): the moved-from state is what is tested
  moved.end();

  const auto events = take_nvtx_events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0], "start allreduce payload -1 7 12");
  EXPECT_THAT(events[1], ::testing::StartsWith("end "));
}

TEST_F(RangesTest, phases_haveDistinctNamesAndColours) {
  std::set<std::string_view> names;
  std::set<std::uint32_t> colours;
  for (const PhaseInfo& phase : kPhases) {
    names.insert(phase.name);
    colours.insert(phase.argb);
  }

  EXPECT_EQ(names.size(), kPhaseCount);
  EXPECT_EQ(colours.size(), kPhaseCount);
  EXPECT_EQ(name_of(Phase::kEval), "eval");
  EXPECT_EQ(step_name(3), "ProfilerStep#3");
}

}  // namespace
}  // namespace sidestream::ranges
