// Arrows and numbers of a merged trace.
#include "profiling/trace/merge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/file.hpp"
#include "profiling/trace/kineto_fields.hpp"
#include "profiling/trace/kineto_stream.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::trace {
namespace {

using test::complete_event;

std::string arrow(const std::string& phase, const std::string& time_us) {
  return R"({"ph":")" + phase + R"(","cat":"ac2g","name":"ac2g","id":1,"pid":1,"tid":1,"ts":)" +
         time_us + R"(,"bp":"e"})";
}

// A launch at 10 us and its kernel at 20 us, tied by an arrow.
std::string launched_kernel() {
  return complete_event("cuda_runtime", "cudaLaunchKernel", "10", "2", R"("correlation":1)") + "," +
         complete_event("kernel", "k", "20", "5", R"("correlation":1,"stream":7)") + "," +
         arrow("s", "10") + "," + arrow("f", "20");
}

class MergeTest : public ::testing::Test {
 protected:
  std::string merge(const MergeCut& cut = {}) {
    const TraceSet set = load_traces(find_traces({scratch_ / "in"}));
    merge_traces(set, std::vector<MergeCut>(set.timelines.size(), cut), scratch_ / "m.json");
    return core::read_file(scratch_ / "m.json");
  }

  // id -> phases of the arrows with it
  std::map<std::string, std::string> arrows() {
    std::map<std::string, std::string> found;
    KinetoDecoder decoder;
    KinetoFields fields;
    visit_kineto(scratch_ / "m.json", {.event =
                                           [&](std::string_view text) {
                                             decoder.decode(text, fields);
                                             if (fields.phase == "s" || fields.phase == "f")
                                               found[std::string(fields.id)] += fields.phase;
                                           },
                                       .metadata = [](std::string_view, std::string_view) {},
                                       .skipped = [](const std::string&) {}});
    return found;
  }

  core::ScratchFolder scratch_;
};

TEST_F(MergeTest, windows_of_a_rank_do_not_share_arrows) {
  test::write_text(scratch_ / "in" / "step_1" / "a.pt.trace.json",
                   test::trace_of(launched_kernel()));
  test::write_text(
      scratch_ / "in" / "step_9" / "a.pt.trace.json",
      R"({"distributedInfo":{"rank":0},"baseTimeNanoseconds":1000000,"traceEvents":[)" +
          launched_kernel() + "]}");

  merge();

  EXPECT_THAT(arrows(), ::testing::ElementsAre(::testing::Pair(::testing::_, "sf"),
                                               ::testing::Pair(::testing::_, "sf")));
}

TEST_F(MergeTest, a_cut_leaves_no_half_of_an_arrow) {
  test::write_text(scratch_ / "in" / "rank-0.json", test::trace_of(launched_kernel()));

  merge({.first_ns = 0, .last_ns = 15'000});
  EXPECT_TRUE(arrows().empty());

  merge({.first_ns = 0, .last_ns = 25'000});
  EXPECT_THAT(arrows(), ::testing::ElementsAre(::testing::Pair(::testing::_, "sf")));
}

TEST_F(MergeTest, numbers_that_json_has_no_word_for_become_null) {
  const std::string event = complete_event(
      "kernel", "nan \\\"Infinity", "20", "5",
      R"("stream":7,"est. achieved occupancy %":NaN,"x":[-Infinity,1e5,true],"bytes":4)");
  test::write_text(scratch_ / "in" / "rank-0.json",
                   test::trace_of(launched_kernel() + "," + event));

  const std::string text = merge();

  EXPECT_THAT(text, ::testing::HasSubstr(
                        R"("est. achieved occupancy %":null,"x":[null,1e5,true],"bytes":4)"));
  EXPECT_THAT(text, ::testing::HasSubstr(R"("name":"nan \"Infinity")"));
  EXPECT_TRUE(nlohmann::json::accept(text));
}

TEST_F(MergeTest, events_of_no_process_and_no_thread_belong_to_the_rank) {
  test::write_text(
      scratch_ / "in" / "rank-0.json",
      test::trace_of(launched_kernel() +
                     R"(,{"ph":"i","s":"g","name":"Record Window End","pid":"","tid":"","ts":90})" +
                     R"(,{"ph":"C","name":"power","pid":3,"ts":91,"args":{"W":300}})"));

  const std::string text = merge();

  EXPECT_THAT(text, ::testing::HasSubstr("Record Window End"));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr(R"("pid":"")")));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr(R"("name":"thread ")")));
}

}  // namespace
}  // namespace sidestream::trace
