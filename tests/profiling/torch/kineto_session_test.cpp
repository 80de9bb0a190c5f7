// The profiler around a few operators: what is in Kineto's file, and what is handed back beside it.
#include "profiling/torch/kineto_session.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include <torch/types.h>

#include "core/base/file.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::kineto {
namespace {

using nlohmann::json;

constexpr std::int64_t kRows = 8, kInner = 16, kColumns = 4;

void some_work() {
  const auto a = torch::ones({kRows, kInner}, torch::requires_grad());
  const auto b = torch::ones({kInner, kColumns});
  a.mm(b).sum().backward();
}

struct Recorded {
  KinetoNotes notes;
  std::multimap<std::string, json> events;
};

Recorded record(const KinetoConfig& config) {
  const core::ScratchFolder scratch;
  KinetoSession session(config);
  session.prepare();
  some_work();  // warm-up: not kept
  session.start();
  for (std::int64_t step : {3, 4}) {
    session.begin_step(step);
    some_work();
    session.end_step();
  }
  Recorded recorded;
  recorded.notes = session.stop(scratch / "raw.json");
  const json trace = json::parse(core::read_file(scratch / "raw.json"));
  for (const json& event : trace.at("traceEvents"))
    recorded.events.emplace(event.value("name", ""), event);
  return recorded;
}

std::uint64_t id_of(const json& event) { return event.at("args").at("External id"); }

TEST(KinetoSessionTest, steps_haveTheirNames) {
  const Recorded recorded = record({});

  EXPECT_EQ(recorded.events.count("ProfilerStep#3"), 1u);
  EXPECT_EQ(recorded.events.count("ProfilerStep#4"), 1u);
  EXPECT_EQ(recorded.events.find("ProfilerStep#3")->second.at("cat"), "user_annotation");
  EXPECT_TRUE(recorded.notes.empty());
}

TEST(KinetoSessionTest, onlyWhatIsActive_isKept) {
  const Recorded recorded = record({.shapes = true});

  EXPECT_EQ(recorded.events.count("aten::mm"), 4u);  // forward and backward of two steps
  const json& product = recorded.events.find("aten::mm")->second;
  EXPECT_EQ(product.at("args").at("Input Dims").at(0), json({kRows, kInner}));
}

TEST(KinetoSessionTest, memory_isSeen) {
  EXPECT_GT(record({.memory = true}).events.count("[memory]"), 0u);
}

TEST(KinetoSessionTest, flops_areHandedBackByTheNumberOfTheFile) {
  const Recorded recorded = record({.shapes = true, .flops = true});

  const auto [begin, end] = recorded.events.equal_range("aten::mm");
  ASSERT_NE(begin, end);
  for (auto event = begin; event != end; ++event)
    EXPECT_EQ(recorded.notes.at(id_of(event->second)).flops,
              static_cast<std::uint64_t>(2 * kRows * kInner * kColumns));
}

TEST(KinetoSessionTest, stacks_belongToTheirOperators) {
  const Recorded recorded = record({.stacks = true});

  const auto [begin, end] = recorded.events.equal_range("aten::mm");
  ASSERT_NE(begin, end);
  int from_here = 0;
  for (auto event = begin; event != end; ++event) {
    const std::string& stack = recorded.notes.at(id_of(event->second)).stack;
    EXPECT_NE(stack, "");
    EXPECT_EQ(stack.find('/'), std::string::npos) << stack;
    // With debug information a call has the name of what was inlined there, which is LibTorch's.
    from_here += stack.find("sidestream::kineto::") != std::string::npos;
  }
  EXPECT_GE(from_here, 2) << begin->second << recorded.notes.at(id_of(begin->second)).stack;
}

TEST(KinetoSessionTest, recordingThatIsDropped_leavesNothingRunning) {
  {
    KinetoSession session(KinetoConfig{.stacks = true});
    session.prepare();
    session.start();
    session.begin_step(1);
    some_work();
  }

  EXPECT_EQ(record({}).events.count("ProfilerStep#3"), 1u);
}

}  // namespace
}  // namespace sidestream::kineto
