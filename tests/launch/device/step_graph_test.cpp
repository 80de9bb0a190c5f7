// When a step is queued, captured and replayed, with an engine that has no device.
#include "launch/device/step_graph.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/base/error.hpp"
#include "launch/device/eager_steps.hpp"
#include "tests/launch/device/fake_graph_engine.hpp"

namespace sidestream::launch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Ways = std::vector<StepWay>;
using enum StepWay;

// Tells the engine's story and its own in one list.
class FakeCapture final : public comm::CollectiveCapture {
 public:
  explicit FakeCapture(std::vector<std::string>& calls) : calls_(calls) {}
  void begin_capture() noexcept override { calls_.push_back("begin collectives"); }
  void end_capture() noexcept override { calls_.push_back("end collectives"); }
  void dropped() noexcept override { calls_.push_back("collectives dropped"); }
  void replayed(comm::Stream) override { calls_.push_back("watch collectives"); }

 private:
  std::vector<std::string>& calls_;
};

struct StepGraphTest : testing::Test {
  std::shared_ptr<FakeGraphEngine::Script> script = std::make_shared<FakeGraphEngine::Script>();
  FakeGraphEngine engine{script};
  FakeCapture collectives{script->calls};
  std::string problem_of_a_peer;
  bool peers_come = true;
  int restored = 0;
  int worked = 0;
  StepGraph graph{engine,
                  collectives,
                  {.agree = [this](const std::string& mine) { return agree(mine); },
                   .current_stream = [] { return comm::Stream(nullptr); },
                   .restore = [this] { ++restored; }}};

  std::string agree(const std::string& mine) const {
    if (!peers_come) throw core::CollectiveError("exchange: not finished after 10000 ms");
    return mine.empty() ? problem_of_a_peer : mine;
  }
  StepWay run(std::uint64_t layout, const std::string& eager_because = "") {
    return graph.run({.layout = layout, .eager_because = eager_because}, [this] { ++worked; });
  }
  Ways run_steps(int count, std::uint64_t layout) {
    Ways ways;
    for (int i = 0; i < count; ++i) ways.push_back(run(layout));
    return ways;
  }
};

TEST_F(StepGraphTest, step_is_captured_after_its_warm_up_and_replayed_from_then_on) {
  const Ways ways = run_steps(6, 1);

  EXPECT_THAT(ways, ElementsAre(kEager, kEager, kEager, kCaptured, kReplayed, kReplayed));
  EXPECT_THAT(script->calls, ElementsAre("begin collectives", "capture", "end collectives",
                                         "replay", "watch collectives", "replay",
                                         "watch collectives", "replay", "watch collectives"));
  EXPECT_EQ(graph.use().captures, 1);
  EXPECT_EQ(graph.use().eager_steps, 3);
  EXPECT_EQ(graph.use().replayed_steps, 3);
  EXPECT_EQ(restored, 0);
}

TEST_F(StepGraphTest, every_step_does_its_work_once) {
  run_steps(9, 1);

  EXPECT_EQ(worked, 9);
}

TEST_F(StepGraphTest, nothing_is_captured_before_the_layout_is_settled) {
  const Ways unsettled = run_steps(5, 0);
  const Ways settled = run_steps(4, 1);

  EXPECT_EQ(unsettled, Ways(5, kEager));
  EXPECT_THAT(settled, ElementsAre(kEager, kEager, kEager, kCaptured));
}

TEST_F(StepGraphTest, another_layout_drops_the_graph_and_begins_anew) {
  run_steps(5, 1);
  graph.take_news();
  script->calls.clear();

  const StepWay first = run(2);

  EXPECT_EQ(first, kEager);
  EXPECT_THAT(script->calls, ElementsAre("drop", "collectives dropped"));
  EXPECT_THAT(graph.take_news(), HasSubstr("dropped, for the buckets have changed"));
  EXPECT_THAT(run_steps(3, 2), ElementsAre(kEager, kEager, kCaptured));
  EXPECT_EQ(graph.use().captures, 2);
}

TEST_F(StepGraphTest, step_with_a_reason_is_eager_and_the_graph_stays) {
  run_steps(4, 1);

  EXPECT_EQ(run(1, "it is profiled"), kEager);
  EXPECT_EQ(run(1), kReplayed);
  EXPECT_EQ(graph.use().captures, 1);
  EXPECT_EQ(graph.use().eager_steps, 4);
}

TEST_F(StepGraphTest, step_with_a_reason_is_not_captured_however_warm) {
  run_steps(3, 1);

  EXPECT_EQ(run(1, "it is profiled"), kEager);
  EXPECT_EQ(run(1), kCaptured);
}

TEST_F(StepGraphTest, capture_is_news_once) {
  run_steps(4, 1);

  EXPECT_THAT(graph.take_news(), HasSubstr("the step was captured in"));
  EXPECT_THAT(graph.take_news(), IsEmpty());
}

TEST_F(StepGraphTest, failed_capture_is_undone_and_says_why_and_what_to_do) {
  run_steps(3, 1);
  script->capture_failure = "operation not permitted when stream is capturing";
  script->calls.clear();

  try {
    run(1);
    FAIL() << "the run went on";
  } catch (const core::AgreedError& error) {
    EXPECT_EQ(error.code(), core::ExitCode::kConfig);
    EXPECT_STREQ(
        error.what(),
        "--cuda-graph on: the step cannot be captured: operation not permitted when stream "
        "is capturing. Leave --cuda-graph out");
  }
  EXPECT_THAT(script->calls, testing::Contains("end collectives"));
  EXPECT_GE(restored, 1);
  EXPECT_FALSE(script->has_graph);
  EXPECT_EQ(graph.use().captures, 0);
}

TEST_F(StepGraphTest, capture_that_failed_on_another_rank_ends_this_one_alike) {
  run_steps(3, 1);
  problem_of_a_peer = "Mout of memory: 2 MiB wanted";

  try {
    run(1);
    FAIL() << "the run went on";
  } catch (const core::AgreedError& error) {
    EXPECT_EQ(error.code(), core::ExitCode::kMemory);
    EXPECT_THAT(error.what(), HasSubstr("out of memory: 2 MiB wanted"));
  }
  EXPECT_FALSE(script->has_graph);
  EXPECT_EQ(restored, 1);
}

// Peers are held up in NCCL by the very failure, and do not come to hear of it.
TEST_F(StepGraphTest, failed_capture_keeps_its_cause_where_peers_do_not_come) {
  run_steps(3, 1);
  peers_come = false;

  EXPECT_THROW(graph.run({.layout = 1}, [] { throw core::MemoryError("out of memory"); }),
               core::MemoryError);
  script->capture_failure = "operation not permitted when stream is capturing";
  try {
    run(1);
    FAIL() << "the run went on";
  } catch (const core::ConfigError& error) {
    EXPECT_STREQ(
        error.what(),
        "--cuda-graph on: the step cannot be captured: operation not permitted when stream "
        "is capturing. Leave --cuda-graph out");
  }
  EXPECT_FALSE(script->has_graph);
}

TEST_F(StepGraphTest, peers_that_do_not_come_are_the_cause_where_the_capture_went_well) {
  run_steps(3, 1);
  peers_come = false;

  EXPECT_THROW(run(1), core::CollectiveError);
  EXPECT_FALSE(script->has_graph);
  EXPECT_GE(restored, 1);
}

TEST_F(StepGraphTest, exception_of_the_work_ends_the_capture) {
  run_steps(3, 1);
  const auto throwing = [] { throw core::Error("2 of 3 parameters got no gradient"); };

  EXPECT_THROW(graph.run({.layout = 1}, throwing), core::AgreedError);
  EXPECT_EQ(script->calls.back(), "end collectives");
  EXPECT_GE(restored, 1);
}

// It is not about the capture, and peers are on their way out: nothing is agreed on.
TEST_F(StepGraphTest, failure_of_a_peer_in_a_capture_is_what_the_run_ends_with) {
  run_steps(3, 1);
  problem_of_a_peer = "Cnever asked for";

  EXPECT_THROW(graph.run({.layout = 1}, [] { throw core::PeerError("rank 1 has died"); }),
               core::PeerError);
  EXPECT_THROW(graph.run({.layout = 1}, [] { throw core::CollectiveError("late"); }),
               core::CollectiveError);
  EXPECT_EQ(restored, 2);
}

TEST_F(StepGraphTest, exception_of_an_eager_step_is_its_own) {
  EXPECT_THROW(graph.run({.layout = 1}, [] { throw core::DataError("shard"); }), core::DataError);
  EXPECT_EQ(restored, 0);
}

TEST(EagerStepsTest, profiled_steps_and_those_with_a_spoiled_loss_are_not_replayed) {
  const ProfilePlan plan(ProfileSchedule{.wait = 2, .warmup = 1, .active = 2, .repeat = 1}, 11);
  const auto planted = faults::parse_faults("nan:rank=1,step=20,steps=2; kill:step=5");

  EXPECT_EQ(why_eager(plan, {}, 12), "");
  EXPECT_EQ(why_eager(plan, {}, 13), "it is profiled");  // the profiler warms up
  EXPECT_EQ(why_eager(plan, {}, 15), "it is profiled");
  EXPECT_EQ(why_eager(plan, {}, 16), "");
  EXPECT_EQ(why_eager(plan, planted, 19), "");
  EXPECT_EQ(why_eager(plan, planted, 5), "");  // the host's end needs no work of the device
  EXPECT_THAT(why_eager(plan, planted, 20), HasSubstr("a fault is planted"));
  EXPECT_THAT(why_eager(plan, planted, 21), HasSubstr("a fault is planted"));
  EXPECT_EQ(why_eager(plan, planted, 22), "");
  EXPECT_THAT(why_eager(plan, faults::parse_faults("inf-grad:rank=0"), 50), HasSubstr("planted"));
  EXPECT_THAT(why_eager(plan, faults::parse_faults("spike:step=7,steps=0"), 99),
              HasSubstr("planted"));
}

}  // namespace
}  // namespace sidestream::launch
