// Arrows and numbers of a merged trace.
#include "profiling/trace/merge.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/file.hpp"
#include "profiling/trace/kineto_fields.hpp"
#include "profiling/trace/kineto_stream.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/database.hpp"
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
    result_ =
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
  MergeResult result_;
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

// A launch of a graph, in whatever order the file has its ends: profilers write kernels first.
TEST_F(MergeTest, a_launch_of_several_kernels_keeps_all_its_arrows) {
  for (const std::string order : {"sfff", "fffs", "fsff"}) {
    std::string events = launched_kernel();
    events = events.substr(0, events.find(R"({"ph":"s")"));  // the arrow is ours
    for (const char phase : order) {
      const std::string text(1, phase);
      events += (events.ends_with(",") ? "" : ",") + arrow(text, phase == 's' ? "10" : "20");
    }
    test::write_text(scratch_ / "in" / "rank-0.json", test::trace_of(events));
    merge();
    ASSERT_EQ(arrows().size(), 1u) << order;
    std::string phases = arrows().begin()->second;
    std::ranges::sort(phases);
    EXPECT_EQ(phases, "fffs") << order;
  }
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

TEST_F(MergeTest, what_is_left_out_is_counted) {
  test::write_text(
      scratch_ / "in" / "rank-0.json",
      test::trace_of(launched_kernel() + "," + complete_event("kernel", "k", "30", "-5") +
                     R"(,7,{"a" 1},)" + complete_event("Trace", "PyTorch Profiler (0)", "5", "90") +
                     "," + complete_event("new_kind", "early", "6", "1") + "," +
                     complete_event("kernel", "two\nlines", "40", "5")));

  const std::string text = merge();

  EXPECT_EQ(result_.left_out.bad_times, 1u);
  EXPECT_EQ(result_.left_out.unreadable, 2u);
  EXPECT_EQ(result_.left_out.too_early, 1u);
  EXPECT_THAT(text, ::testing::HasSubstr(R"("name":"two lines")"));
  EXPECT_TRUE(nlohmann::json::accept(text));
}

// What a report of one rank looks at beside its events.
TEST_F(MergeTest, a_file_of_one_rank_says_what_the_rank_said_of_itself) {
  test::write_text(
      scratch_ / "in" / "rank-1.json",
      R"({"distributedInfo":{"rank":1,"world_size":2,"backend":"mpi"},"baseTimeNanoseconds":1000000,)"
      R"("deviceProperties":[{"id":0,"name":"G","numSms":100,"computeMajor":9}],)"
      R"("sidestream":{"tokens_per_step":64,"profiled":false,"dropped_samples":5,"dropped_ranges":7,)"
      R"("complete_from_ns":1015000},"traceEvents":[)" +
          launched_kernel() + "]}");

  merge();

  const TraceSet again = load_traces(find_traces({scratch_ / "m.json"}));
  const RankInfo& info = again.timelines.front().info;
  EXPECT_EQ(info.rank, 1);
  EXPECT_EQ(info.world_size, 2);
  EXPECT_EQ(info.backend, "mpi");
  EXPECT_EQ(info.devices.at(0).sm_count, 100);
  EXPECT_EQ(info.figures.tokens_per_step, 64);
  EXPECT_EQ(info.figures.profiled, false);
  EXPECT_EQ(info.dropped_ranges, 7u);
  EXPECT_EQ(again.timelines.front().skipped.begin()->second, 5u) << "samples without room";
  EXPECT_EQ(info.complete_from_ns, 1'015'000);
}

TEST_F(MergeTest, windows_of_a_rank_add_up_what_they_lost) {
  const auto write = [&](const char* folder, const char* base, const char* lost) {
    test::write_text(scratch_ / "in" / folder / "a.pt.trace.json",
                     std::string(R"({"distributedInfo":{"rank":0},"baseTimeNanoseconds":)") + base +
                         R"(,"sidestream":{"dropped_ranges":)" + lost + R"(},"traceEvents":[)" +
                         launched_kernel() + "]}");
  };
  write("step_1", "0", R"(3,"complete_from_ns":12000)");
  write("step_9", "1000000", R"(4,"complete_from_ns":1012000)");
  merge();
  EXPECT_THAT(core::read_file(scratch_ / "m.json"),
              ::testing::HasSubstr(R"("dropped_ranges":7,"complete_from_ns":1012000)"));

  write("step_9", "1000000", "4");
  merge();
  EXPECT_THAT(core::read_file(scratch_ / "m.json"),
              ::testing::Not(::testing::HasSubstr("complete_from_ns")))
      << "where they were is not known";
}

// Two ranges of a collective, and samples of the GPU's counters inside of them and behind.
constexpr const char* kExport =
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1,'ncclDevKernel_AllReduce_Sum_bf16_RING_LL'),"
    "(2,'cudaLaunchKernelExC');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT,end INT,deviceId INT,streamId INT,"
    "correlationId INT,globalPid INT,shortName INT);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (3000,5000,0,7,1,16777216,1);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT,end INT,globalTid INT,correlationId INT,"
    "nameId INT);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (2000,2500,16777217,1,2);"
    "CREATE TABLE NVTX_EVENTS(start INT,end INT,eventType INT,text TEXT,globalTid INT,"
    "jsonText TEXT);"
    "INSERT INTO NVTX_EVENTS VALUES (1000,6000,59,'allreduce',16777217,"
    "'{\"bucket\":3,\"sequence\":41,\"bytes\":4000}');"
    "CREATE TABLE TARGET_INFO_GPU_METRICS(typeId INT,metricId INT,metricName TEXT);"
    "INSERT INTO TARGET_INFO_GPU_METRICS VALUES (0,1,'SMs Active [Throughput %]'),"
    "(0,2,'Tensor Active [Throughput %]');"
    "CREATE TABLE GPU_METRICS(timestamp INT,typeId INT,metricId INT,value REAL);"
    "INSERT INTO GPU_METRICS VALUES (4000,0,1,80),(4000,0,2,12.5),(9000,0,1,10);";

TEST_F(MergeTest, an_export_keeps_what_its_collectives_carry_and_its_counters) {
  test::make_database(scratch_ / "in" / "rank-0.sqlite", kExport);

  const auto merged = nlohmann::json::parse(merge({.first_ns = 0, .last_ns = 8000}));

  std::map<std::string, nlohmann::json> events;  // by category and phase
  int counters = 0;
  for (const auto& event : merged["traceEvents"]) {
    events[event.value("cat", "") + event["ph"].get<std::string>()] = event;
    counters += event["ph"] == "C" ? 1 : 0;
  }
  for (const char* of : {"user_annotationX", "kernelX"}) {
    const auto& told = events.at(of)["args"];
    EXPECT_EQ(told["payload bytes"], 4000) << of;
    EXPECT_EQ(told["bucket"], 3) << of;
    EXPECT_EQ(told["sequence"], 41) << of;
  }
  EXPECT_EQ(events.at("user_annotationX")["args"]["Collective name"], "allreduce");
  EXPECT_EQ(counters, 1) << "the other one is cut off";
  EXPECT_EQ(events.at("systemC")["ts"], 3.0);
  EXPECT_EQ(events.at("systemC")["args"],
            nlohmann::json::parse(R"({"SMs active":80,"Tensor Cores active":12.5})"));

  const TraceSet again = load_traces(find_traces({scratch_ / "m.json"}));
  const RankTimeline& timeline = again.timelines.front();
  EXPECT_EQ(timeline.counters().size(), 2u);
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.name(row) != "allreduce") continue;
    ASSERT_NE(timeline.collective(row), nullptr);
    EXPECT_EQ(timeline.collective(row)->sequence, 41);
  }
}

// "memory [MiB] 10.0 -": name, time and length of each counter event.
std::vector<std::string> counters_of(const std::string& merged) {
  std::vector<std::string> counters;
  const nlohmann::json trace = nlohmann::json::parse(merged);
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") != "C") continue;
    const std::string length = event.contains("dur") ? event.at("dur").dump() : "-";
    counters.push_back(event.at("name").get<std::string>() + " " + event.at("ts").dump() + " " +
                       length);
  }
  return counters;
}

// The kernel, the first event, begins at 10 us.
TEST_F(MergeTest, rates_stand_at_the_beginning_of_their_time_and_are_read_at_its_end) {
  std::string events = complete_event("kernel", "k", "10", "40");
  for (const char* time : {"5", "20", "30"})
    events += "," + test::counter_event("machine cpu [%]", time, R"("busy":40)");
  for (const char* time : {"20", "30"})
    events += "," + test::counter_event("memory [MiB]", time, R"("process":7)");
  events += R"(,{"ph":"C","name":"of others [%]","pid":1,"ts":30,"args":{"x":1}})";
  test::write_text(scratch_ / "in" / "rank-0.json", test::trace_of(events));
  const auto expected =
      ::testing::ElementsAre("machine cpu [%] 0.0 10.0", "machine cpu [%] 10.0 10.0",
                             "memory [MiB] 10.0 -", "memory [MiB] 20.0 -", "of others [%] 20.0 -");

  const std::string merged = merge();

  EXPECT_THAT(counters_of(merged), expected);
  EXPECT_EQ(result_.left_out.too_early, 1u);
  const TraceSet again = load_traces(find_traces({scratch_ / "m.json"}));
  std::vector<std::int64_t> times_ns;
  for (std::size_t i = 0; i < again.timelines.front().counters().size(); ++i)
    times_ns.push_back(again.timelines.front().counters()[i].time_ns);
  EXPECT_THAT(times_ns, ::testing::ElementsAre(10'000, 20'000, 10'000, 20'000, 20'000));
  test::write_text(scratch_ / "in" / "rank-0.json", merged);
  EXPECT_THAT(counters_of(merge()), expected) << "of a merged trace they stand where they should";
}

// Each window has a first rate, whose beginning nobody knows.
TEST_F(MergeTest, no_rate_is_of_the_time_between_two_windows) {
  const auto write = [&](const char* folder, const char* base) {
    const std::string events = complete_event("kernel", "k", "10", "40") + "," +
                               test::counter_event("machine cpu [%]", "20", R"("busy":40)") + "," +
                               test::counter_event("machine cpu [%]", "30", R"("busy":50)");
    test::write_text(scratch_ / "in" / folder / "a.pt.trace.json",
                     std::string(R"({"distributedInfo":{"rank":0},"baseTimeNanoseconds":)") + base +
                         R"(,"traceEvents":[)" + events + "]}");
  };
  write("step_1", "0");
  write("step_9", "1000000");
  const auto expected =
      ::testing::ElementsAre("machine cpu [%] 10.0 0.0", "machine cpu [%] 10.0 10.0",
                             "machine cpu [%] 1010.0 0.0", "machine cpu [%] 1010.0 10.0");

  const std::string merged = merge();

  EXPECT_THAT(counters_of(merged), expected);
  std::filesystem::remove_all(scratch_ / "in");
  test::write_text(scratch_ / "in" / "rank-0.json", merged);
  EXPECT_THAT(counters_of(merge()), expected);
}

TEST_F(MergeTest, counters_of_an_export_stand_at_the_beginning_of_their_time) {
  test::make_database(scratch_ / "in" / "rank-0.sqlite", kExport);

  EXPECT_THAT(counters_of(merge()),
              ::testing::ElementsAre("gpu counters [%] 3.0 0.0", "gpu counters [%] 3.0 5.0"));
}

// Perfetto drops what crosses another event of its thread.
TEST_F(MergeTest, what_crosses_another_event_of_its_track_is_drawn_beside_it) {
  test::write_text(scratch_ / "in" / "rank-0.json",
                   test::trace_of(complete_event("kernel", "outer", "10", "20") + "," +
                                  complete_event("kernel", "inside", "12", "8") + "," +
                                  complete_event("kernel", "crosses", "25", "10") + "," +
                                  complete_event("kernel", "behind", "30", "1") + "," +
                                  complete_event("kernel", "later", "40", "1")));
  std::map<std::string, int> thread;
  std::map<int, std::string> label;
  const auto merged = nlohmann::json::parse(merge());
  for (const auto& event : merged.at("traceEvents")) {
    const std::string name = event.at("name");
    if (event.at("ph") == "X") thread[name] = event.at("tid");
    if (name == "thread_name") label[event.at("tid")] = event.at("args").at("name");
  }

  for (const char* name : {"inside", "behind", "later"})
    EXPECT_EQ(thread.at(name), thread.at("outer")) << name;
  EXPECT_NE(thread.at("crosses"), thread.at("outer"));
  EXPECT_EQ(label.at(thread.at("crosses")), label.at(thread.at("outer")) + ", beside it 1");
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
