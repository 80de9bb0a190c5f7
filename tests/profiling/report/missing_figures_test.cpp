// What was not measured is asked for in words that fit where the ranks compute.
#include "profiling/report/missing_figures.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/profiling/analysed.hpp"

namespace sidestream::report {
namespace {

using test::Analysed;
using test::complete_event;

constexpr const char* kStep = "ProfilerStep#1";

std::string needs_of(const std::string& figure, const Analysed& made) {
  for (const auto& [name, needs] : missing_figures(made.all, {})) {
    if (name == figure) return needs;
  }
  return "";
}

TEST(MissingFiguresTest, ranks_on_processors_are_not_asked_for_events_of_a_device) {
  const Analysed made(complete_event("user_annotation", kStep, "0", "100") + "," +
                      complete_event("user_annotation", "forward", "0", "50"));
  ASSERT_EQ(made.all.ranks.front().activity.where, analysis::Where::kHost);
  for (const char* figure : {"gpu_utilisation", "tensor_core_share", "joules_per_token"})
    EXPECT_EQ(needs_of(figure, made), "a GPU: these ranks compute on processors") << figure;
  EXPECT_EQ(needs_of("tokens_per_s", made), "the run directory of the traces (metrics.jsonl)");
}

TEST(MissingFiguresTest, what_was_measured_is_not_asked_for) {
  const Analysed made(complete_event("user_annotation", kStep, "0", "100") + "," +
                      complete_event("kernel", "gemm", "0", "50"));
  EXPECT_EQ(needs_of("gpu_utilisation", made), "");
  EXPECT_EQ(needs_of("tensor_core_share", made), "");
  EXPECT_NE(needs_of("joules_per_token", made).find("--sample-hz"), std::string::npos);
}

TEST(MissingFiguresTest, kernels_without_names_leave_open_what_is_communication) {
  Analysed made(complete_event("user_annotation", kStep, "0", "100") + "," +
                complete_event("kernel", "gemm", "0", "50"));
  constexpr const char* kSplit =
      "what of the kernels is communication (those without a name count as computing)";
  EXPECT_EQ(needs_of(kSplit, made), "");
  made.set.timelines.front().info.nameless_kernels = true;
  EXPECT_EQ(needs_of(kSplit, made), "the names of all kernels: one without may communicate");
}

TEST(MissingFiguresTest, kinds_of_collectives_that_no_other_rank_has_are_named) {
  Analysed made(complete_event("user_annotation", kStep, "0", "100"));
  const analysis::CollectiveRow alone{.name = "broadcast", .unmatched_ns = 5};
  const analysis::CollectiveRow longer{.name = "all_gather", .unmatched_ns = 7};
  const analysis::CollectiveRow matched{.name = "allreduce", .unmatched_ns = 1, .transfer_ns = 3};
  constexpr const char* kNeeds = "the traces of all ranks of a process group";

  made.all.collectives = {alone, matched, longer, alone};
  EXPECT_EQ(needs_of("transfer and waiting of some collectives (all_gather, broadcast)", made),
            kNeeds);
  made.all.collectives = {matched, alone};
  EXPECT_EQ(needs_of("transfer and waiting of some collectives (broadcast)", made), kNeeds);
  made.all.collectives = {alone, longer};
  EXPECT_EQ(needs_of("transfer and waiting of collectives", made), kNeeds);
  for (const auto& rows : {std::vector<analysis::CollectiveRow>{}, std::vector{matched}}) {
    made.all.collectives = rows;
    for (const auto& [name, needs] : missing_figures(made.all, {}))
      EXPECT_FALSE(name.starts_with("transfer")) << name;
  }
}

TEST(MissingFiguresTest, what_graphs_hide_is_asked_for) {
  const Analysed made(complete_event("user_annotation", kStep, "0", "100") + "," +
                      complete_event("gpu_graph", "graph", "0", "80"));
  for (const char* figure : {"verdict", "gpu_utilisation", "tensor_core_share"})
    EXPECT_NE(needs_of(figure, made).find("--cuda-graph-trace=node"), std::string::npos) << figure;
  EXPECT_NE(needs_of("joules_per_token", made).find("--sample-hz"), std::string::npos);
}

}  // namespace
}  // namespace sidestream::report
