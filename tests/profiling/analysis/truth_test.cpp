// Traces with known answers: every number to the nanosecond. Those of tests/data/traces, and where
// a folder of public traces lies beside the repository (shared/traces), those too.
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "profiling/analysis/collective_match.hpp"
#include "profiling/analysis/step_budget.hpp"
#include "profiling/analysis/step_windows.hpp"
#include "profiling/trace/trace_set.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_folder.hpp"

namespace sidestream::analysis {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using trace::Kind;

class TruthTest : public ::testing::TestWithParam<fs::path> {
 protected:
  void SetUp() override {
    folder_ = GetParam();
    std::ifstream file(folder_ / "expected_truth.json");
    truth_ = Json::parse(file);
    set_ = trace::load_traces(trace::find_traces({input()}));
  }

  // SQLite is not read packed.
  fs::path input() {
    const fs::path packed = folder_ / "trace.sqlite.gz";
    if (!fs::exists(packed)) return folder_;
    const fs::path unpacked = scratch_ / "trace.sqlite";
    test::unpack(packed, unpacked);
    return unpacked;
  }

  fs::path folder_;
  core::ScratchFolder scratch_;
  Json truth_;
  trace::TraceSet set_;
};

void expect_budget(const StepBudget& budget, const Json& expected) {
  EXPECT_EQ(budget.window_ns, expected["window"]);
  EXPECT_EQ(budget.compute_ns, expected["compute"]);
  EXPECT_EQ(budget.communication_ns, expected["comm"]);
  EXPECT_EQ(budget.copies_ns, expected["memcpy"]);
  EXPECT_EQ(budget.overlapped_comm_ns, expected["overlapped_comm"]);
  EXPECT_EQ(budget.exposed_comm_ns, expected["exposed_comm"]);
  EXPECT_EQ(budget.exposed_memcpy_ns, expected["exposed_memcpy"]);
  EXPECT_EQ(budget.idle_ns, expected["idle"]);
  EXPECT_EQ(budget.compute_ns + budget.exposed_comm_ns + budget.exposed_memcpy_ns + budget.idle_ns,
            budget.window_ns);
}

void expect_counts(const trace::RankTimeline& timeline, const Json& expected) {
  std::map<std::string, int> counts;
  std::set<std::string> streams;
  int collectives = 0;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    const Kind kind = timeline.kind(row);
    if (!trace::is_device_work(kind)) continue;
    ++counts[std::string(trace::name_of(kind))];
    collectives += kind == Kind::kKernel && trace::is_collective_kernel(timeline.name(row));
    streams.insert(std::to_string(timeline.device(row)->stream));
  }
  EXPECT_EQ(counts, (expected["gpu_events"].get<std::map<std::string, int>>()));
  EXPECT_EQ(collectives, expected["comm_kernels"]);
  EXPECT_EQ(streams, expected["streams"].get<std::set<std::string>>());
}

TEST_P(TruthTest, every_rank) {
  ASSERT_EQ(set_.timelines.size(), truth_["ranks"].size());
  for (const trace::RankTimeline& timeline : set_.timelines) {
    SCOPED_TRACE("rank " + std::to_string(timeline.info.rank));
    const Json& expected = truth_["ranks"][std::to_string(timeline.info.rank)];
    const DeviceActivity activity = device_activity(timeline);

    expect_counts(timeline, expected);
    if (expected["gpu_window"].is_null()) {
      EXPECT_EQ(activity.where, Where::kNothing);
    } else {
      EXPECT_EQ(activity.window.start_ns, expected["gpu_window"]["start"]);
      EXPECT_EQ(activity.window.end_ns, expected["gpu_window"]["end"]);
      expect_budget(BudgetSets(activity).budget_of(activity.window), expected["gpu_window"]);
    }
  }
}

TEST_P(TruthTest, every_step) {
  for (const trace::RankTimeline& timeline : set_.timelines) {
    const Json& steps = truth_["ranks"][std::to_string(timeline.info.rank)]["steps"];
    const DeviceActivity activity = device_activity(timeline);
    std::vector<StepWindow> windows = step_windows(timeline, activity);
    std::erase_if(windows, [](const StepWindow& one) { return !one.step.has_value(); });
    ASSERT_EQ(windows.size(), steps.size());
    for (std::size_t i = 0; i < windows.size(); ++i) {
      SCOPED_TRACE(steps[i]["name"]);
      EXPECT_EQ("ProfilerStep#" + std::to_string(*windows[i].step), steps[i]["name"]);
      EXPECT_EQ(windows[i].window.start_ns, steps[i]["start"]);
      EXPECT_EQ(windows[i].window.end_ns, steps[i]["end"]);
      expect_budget(BudgetSets(activity).budget_of(windows[i].window), steps[i]);
    }
  }
}

TEST_P(TruthTest, longest_kernels) {
  for (const trace::RankTimeline& timeline : set_.timelines) {
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> totals;  // name -> total, count
    for (std::size_t row = 0; row < timeline.size(); ++row) {
      if (timeline.kind(row) != Kind::kKernel) continue;
      auto& [total, count] = totals[std::string(timeline.name(row))];
      total += timeline.duration_ns(row);
      ++count;
    }
    for (const Json& expected : truth_["ranks"][std::to_string(timeline.info.rank)]["top5"]) {
      const auto found = totals.find(expected["name"]);
      ASSERT_NE(found, totals.end()) << expected["name"];
      EXPECT_EQ(found->second.first, expected["total"]);
      EXPECT_EQ(found->second.second, expected["count"]);
    }
  }
}

TEST_P(TruthTest, collectives) {
  const Json& expected = truth_["collectives"];
  const CollectiveMatches matches = match_collectives(set_);

  ASSERT_EQ(matches.matched.size(), expected["matched"]);
  std::map<std::string, std::int64_t> waiting;
  for (std::size_t i = 0; i < matches.matched.size(); ++i) {
    const MatchedCollective& one = matches.matched[i];
    const Json& list = expected["list"];
    const auto same = std::find_if(list.begin(), list.end(), [&](const Json& other) {
      return other["group"] == one.group && other["index"] == one.index;
    });
    ASSERT_NE(same, list.end()) << one.group << " " << one.index;
    EXPECT_EQ(one.transfer_ns, (*same)["transfer_ns"]);
    EXPECT_EQ(one.kernel, (*same)["kernel"]);
    for (const CollectivePart& part : one.parts) {
      EXPECT_EQ(part.duration_ns, (*same)["dur_ns"][std::to_string(part.rank)]);
      EXPECT_EQ(part.duration_ns - one.transfer_ns, (*same)["wait_ns"][std::to_string(part.rank)]);
      waiting[std::to_string(part.rank)] += part.duration_ns - one.transfer_ns;
    }
  }
  EXPECT_EQ(waiting, (expected["total_wait_ns"].get<std::map<std::string, std::int64_t>>()));
  EXPECT_EQ(matches.unmatched.size(), expected["unmatched_groups"].size());
  for (const UnmatchedGroup& group : matches.unmatched) {
    for (const auto& [rank, count] : group.count_of_rank)
      EXPECT_EQ(count, expected["unmatched_groups"][group.group][std::to_string(rank)]);
  }
}

INSTANTIATE_TEST_SUITE_P(Traces, TruthTest, ::testing::ValuesIn(test::traces_with_truth()),
                         [](const auto& info) { return info.param.filename().string(); });

TEST(TracesTest, of_the_repository_are_there) { EXPECT_GE(test::traces_with_truth().size(), 3u); }

}  // namespace
}  // namespace sidestream::analysis
