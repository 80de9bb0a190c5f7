#include "profiling/trace/trace_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/database.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::trace {
namespace {

using test::complete_event;
using test::trace_of;
using test::write_text;
using ::testing::AllOf, ::testing::Contains, ::testing::HasSubstr;

class TraceSetTest : public ::testing::Test {
 protected:
  TraceSet load() { return load_traces(find_traces({scratch_.path()})); }

  void make_database(const std::string& name, const std::string& script) {
    test::make_database(scratch_ / name, script);
  }

  core::ScratchFolder scratch_;
};

// Schema 3.0.0 in short: the columns that a reader cannot do without.
constexpr const char* kOldExport =
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1,'gemm<1>'),(2,'gemm'),(3,'cudaLaunchKernel_v7000');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT,end INT,deviceId INT,streamId "
    "INT,correlationId INT,"
    "globalPid INT,demangledName INT,shortName INT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT,end INT,globalTid INT,correlationId "
    "INT,nameId INT);"
    "CREATE TABLE NVTX_EVENTS(start INT,end INT,eventType INT,text TEXT,globalTid INT);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES "
    "(100,200,0,7,1,16777216,1,2),(150,300,1,7,2,16777216,1,2),"
    "(500,400,1,7,3,16777216,1,2);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (50,60,16777217,1,3);"
    "INSERT INTO NVTX_EVENTS VALUES "
    "(10,400,59,'ProfilerStep#5',16777217),(20,NULL,59,'open',16777217);";

// NVTX_EVENTS of newer versions. The range has its payload in one of three places: 'json', 'text'
// (of StringIds) or 'bytes'.
std::string new_export(const std::string& place) {
  const std::string json = R"({"sidestream.collective":{"bucket":3,"sequence":41,"bytes":4000}})";
  const std::string bytes =  // domain 1, schema 0x010051DE, 24 of 56 bytes, then three numbers
      "0100000000000000DE51000100000000"
      "18000000000000003800000000000000"
      "0300000000000000"
      "2900000000000000"
      "A00F000000000000";
  return "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
         "INSERT INTO StringIds VALUES (9,'" +
         json +
         "');"
         "CREATE TABLE NVTX_EVENTS(start INT,end INT,eventType INT,text TEXT,globalTid INT,"
         "jsonTextId INT,jsonText TEXT,binaryData BLOB);"
         "CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES(domainId INT,schemaId INT,idx INT,type INT,"
         "name TEXT,\"offset\" INT);"
         "INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES (1,16798174,0,17,'bucket',NULL),"
         "(1,16798174,1,17,'sequence',8),(1,16798174,2,17,'bytes',16);"
         "INSERT INTO NVTX_EVENTS VALUES (10,400,59,'ProfilerStep#5',16777217,NULL,NULL,NULL),"
         "(20,60,60,'allreduce',16777217," +
         (place == "text" ? "9," : "NULL,") + (place == "json" ? "'" + json + "'," : "NULL,") +
         (place == "bytes"    ? "X'" + bytes + "'"
          : place == "digits" ? "'" + bytes + "'"
                              : "NULL") +
         "),(70,80,60,'allreduce',16777217,77,'{\"bucket\":1}',X'00');";
}

TEST_F(TraceSetTest, payloads_of_newer_exports_are_read_wherever_they_are) {
  for (const std::string place : {"json", "text", "bytes", "digits"}) {
    make_database(place + ".sqlite", new_export(place));
    const TraceSet set = load_traces(find_traces({scratch_ / (place + ".sqlite")}));

    const RankTimeline& timeline = set.timelines.front();
    std::vector<const CollectiveDetail*> details;
    for (std::size_t row = 0; row < timeline.size(); ++row) {
      if (timeline.name(row) == "allreduce") details.push_back(timeline.collective(row));
    }
    ASSERT_EQ(details.size(), 2u) << place;
    ASSERT_NE(details[0], nullptr) << place;
    EXPECT_EQ(details[0]->bucket, 3) << place;
    EXPECT_EQ(details[0]->sequence, 41) << place;
    EXPECT_EQ(details[0]->bytes, 4000) << place;
    EXPECT_EQ(details[1], nullptr) << place << ": half a payload is none";
  }
}

TEST_F(TraceSetTest, devices_of_an_export_become_ranks) {
  make_database("a.sqlite", kOldExport);
  const std::string before = core::read_file(scratch_ / "a.sqlite");

  const TraceSet set = load();

  ASSERT_EQ(set.timelines.size(), 2u);
  EXPECT_EQ(set.timelines[1].info.rank, 1);
  EXPECT_EQ(set.timelines[0].name(0), "gemm");
  EXPECT_EQ(set.timelines[0].correlation(0), 1u);
  EXPECT_EQ(set.timelines[0].name(1), "cudaLaunchKernel");
  EXPECT_EQ(set.timelines[0].name(2), "ProfilerStep#5");
  EXPECT_EQ(set.timelines[1].skipped.at("negative duration"), 1u);
  EXPECT_EQ(set.timelines[0].skipped.at("no end"), 1u);
  EXPECT_EQ(core::read_file(scratch_ / "a.sqlite"), before);
  EXPECT_THAT(scratch_.names(), ::testing::ElementsAre("a.sqlite"));
}

TEST_F(TraceSetTest, exports_of_several_devices_each_are_numbered_through) {
  make_database("node0.sqlite", kOldExport);
  make_database("rank_00001.sqlite", kOldExport);

  EXPECT_THAT(load().ranks(), ::testing::ElementsAre(0, 1, 2, 3));
}

TEST_F(TraceSetTest, a_helper_process_of_an_export_is_no_rank) {
  make_database("a.sqlite", std::string(kOldExport) +
                                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES "
                                "(50,60,33554433,77,3);");

  const TraceSet set = load();

  EXPECT_THAT(set.ranks(), ::testing::ElementsAre(0, 1));
  EXPECT_EQ(set.warnings.size(), 2u) << "that, and the kernel that ends before it starts";
  EXPECT_THAT(set.warnings, Contains(HasSubstr("1 process without")));
}

TEST_F(TraceSetTest, processes_with_ranges_of_the_user_alone_are_ranks) {
  make_database("a.sqlite",
                "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
                "CREATE TABLE NVTX_EVENTS(start INT,end INT,eventType INT,text TEXT,globalTid INT);"
                "INSERT INTO NVTX_EVENTS VALUES (10,400,59,'mine',16777217),"
                "(10,400,59,'mine',33554433);");

  EXPECT_THAT(load().ranks(), ::testing::ElementsAre(0, 1));
}

// Names of the runtime calls of a rank, one after the other.
std::string calls_of(const RankTimeline& timeline) {
  std::string names;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) == Kind::kRuntime) names += std::string(timeline.name(row)) + " ";
  }
  return names;
}

// Exporters write rows in any order.
TEST_F(TraceSetTest, a_runtime_call_belongs_to_the_device_that_its_thread_launches_on) {
  make_database("a.sqlite",
                std::string(kOldExport) +
                    "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME;"
                    "INSERT INTO StringIds VALUES (4,'first'),(5,'launch0'),(6,'sync0'),"
                    "(7,'launch1'),(8,'sync1'),(9,'other_thread');"
                    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (50,51,16777217,92,8),"
                    "(20,21,16777217,1,5),(10,11,16777217,90,4),(60,61,16777218,93,9),"
                    "(40,41,16777217,2,7),(30,31,16777217,91,6);");

  const TraceSet set = load();

  ASSERT_EQ(set.timelines.size(), 2u);
  EXPECT_EQ(calls_of(set.timelines[0]), "first launch0 sync0 other_thread ");
  EXPECT_EQ(calls_of(set.timelines[1]), "first launch1 sync1 other_thread ");
}

TEST_F(TraceSetTest, ranges_in_flight_have_lanes_of_their_own) {
  make_database("a.sqlite", std::string(kOldExport) +
                                "DELETE FROM NVTX_EVENTS;"
                                "INSERT INTO NVTX_EVENTS VALUES (30,90,60,'second',16777217),"
                                "(10,50,60,'first',16777218),(50,60,60,'third',16777217),"
                                "(5,95,59,'backward',16777217);");

  const TraceSet set = load();

  const RankTimeline& timeline = set.timelines.at(0);
  std::map<std::string, std::string> lane_of;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) == Kind::kHostRange)
      lane_of[std::string(timeline.name(row))] = timeline.tracks()[timeline.track_of(row)].thread;
  }
  EXPECT_THAT(lane_of, ::testing::ElementsAre(::testing::Pair("backward", "1"),
                                              ::testing::Pair("first", "in flight 1"),
                                              ::testing::Pair("second", "in flight 2"),
                                              ::testing::Pair("third", "in flight 1")));
}

TEST_F(TraceSetTest, names_that_are_no_text_are_repaired) {
  write_text(scratch_ / "st\xFFp" / "rank-0.json",
             trace_of(complete_event("kernel", "k", "1", "1"), 0, 2));
  make_database("st\xFFp/rank-1.sqlite",
                "CREATE TABLE NVTX_EVENTS(start INT,end INT,eventType INT,text TEXT,globalTid INT);"
                "INSERT INTO NVTX_EVENTS VALUES (10,400,59,CAST(X'6261FF64' AS TEXT),16777217);");

  const TraceSet kineto = load_traces(find_traces({scratch_ / "st\xFFp" / "rank-0.json"}));
  const TraceSet nsys = load_traces(find_traces({scratch_ / "st\xFFp" / "rank-1.sqlite"}));

  EXPECT_EQ(kineto.timelines.at(0).info.window, "st?p");
  EXPECT_EQ(nsys.timelines.at(0).name(0), "ba?d");
}

TEST_F(TraceSetTest, a_database_that_is_no_export) {
  make_database("a.sqlite", "CREATE TABLE people(name TEXT)");
  EXPECT_THROW(load(), core::DataError);
}

TEST_F(TraceSetTest, a_damaged_database) {
  make_database("a.sqlite", kOldExport);
  std::filesystem::resize_file(scratch_ / "a.sqlite", 4096);
  EXPECT_THROW(load(), core::DataError);
}

TEST_F(TraceSetTest, a_folder_without_traces) {
  write_text(scratch_ / "report.json", "{}");
  EXPECT_THROW(load(), core::DataError);
}

TEST_F(TraceSetTest, an_empty_file) {
  write_text(scratch_ / "rank-0.json", "");
  EXPECT_THROW(load(), core::DataError);
}

TEST_F(TraceSetTest, files_without_any_event_are_no_traces) {
  for (const char* text : {"{}", "[]", R"({"a":{"b":1}})", R"({"traceEvents":[]})",
                           R"({"traceEvents":[{"ph":"X","cat":"junk"}]})"}) {
    write_text(scratch_ / "rank-0.json", text);
    EXPECT_THROW(load(), core::DataError) << text;
  }
}

TEST_F(TraceSetTest, a_file_without_events_beside_others_is_a_warning) {
  write_text(scratch_ / "rank-0.json", trace_of(complete_event("kernel", "k", "1", "1"), 0, 2));
  write_text(scratch_ / "rank-1.json", trace_of("", 1, 2));

  EXPECT_THAT(load().warnings, ::testing::ElementsAre(HasSubstr("rank-1.json has no")));
}

TEST_F(TraceSetTest, what_an_export_lacks_is_said) {
  make_database("a.sqlite",
                "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
                "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT,end INT);"
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (10,20);");

  const TraceSet set = load();

  EXPECT_THAT(set.warnings,
              AllOf(Contains(HasSubstr("no table NVTX_EVENTS")),
                    Contains(HasSubstr("no column deviceId")), Contains(HasSubstr("no names"))));
}

TEST_F(TraceSetTest, two_files_of_one_rank_and_window) {
  write_text(scratch_ / "rank-0.json", trace_of(complete_event("kernel", "k", "1", "1"), 0, 2));
  write_text(scratch_ / "rank-1.json", trace_of(complete_event("kernel", "k", "1", "1"), 0, 2));
  EXPECT_THROW(load(), core::DataError);
}

TEST_F(TraceSetTest, windows_of_one_rank_are_no_conflict) {
  write_text(scratch_ / "step_1" / "a.pt.trace.json",
             trace_of(complete_event("kernel", "k", "1", "1")));
  write_text(scratch_ / "step_9" / "a.pt.trace.json",
             trace_of(complete_event("kernel", "k", "9", "1")));
  EXPECT_EQ(load().timelines.size(), 2u);
}

TEST_F(TraceSetTest, files_without_a_rank_of_the_same_time_are_different_ranks_in_any_folder) {
  const auto nameless = [](const std::string& event) {
    return R"({"traceEvents":[)" + event + "]}";
  };
  write_text(scratch_ / "one" / "a.pt.trace.json",
             nameless(complete_event("kernel", "k", "10", "20")));
  write_text(scratch_ / "other" / "a.pt.trace.json",
             nameless(complete_event("kernel", "k", "15", "20")));
  write_text(scratch_ / "later" / "a.pt.trace.json",
             nameless(complete_event("kernel", "k", "90", "20")));

  const TraceSet set = load();

  EXPECT_THAT(set.ranks(), ::testing::ElementsAre(0, 1));
  EXPECT_EQ(set.timelines.size(), 3u);
}

// Windows of the timelines of a set, with their ranks: "flat 1/0 ...".
std::string windows_of(const TraceSet& set) {
  std::string text;
  for (const RankTimeline& one : set.timelines)
    text += one.info.window.substr(one.info.window.find(' ')) + "/" + std::to_string(one.info.rank);
  return text;
}

std::string kernel_at(const std::string& time_us) {
  return complete_event("kernel", "k", time_us, "5");
}

TEST_F(TraceSetTest, windows_of_all_ranks_in_one_folder_are_told_apart_by_time) {
  // As PyTorch's handler writes them: names do not sort by time.
  write_text(scratch_ / "flat" / "a_00000.9.pt.trace.json", trace_of(kernel_at("10"), 0, 2));
  write_text(scratch_ / "flat" / "a_00000.12.pt.trace.json", trace_of(kernel_at("100"), 0, 2));
  write_text(scratch_ / "flat" / "a_00001.9.pt.trace.json", trace_of(kernel_at("12"), 1, 2));
  write_text(scratch_ / "flat" / "a_00001.12.pt.trace.json", trace_of(kernel_at("103"), 1, 2));

  const TraceSet set = load();

  EXPECT_EQ(windows_of(set), " 1/0 1/1 2/0 2/1");
  EXPECT_EQ(set.timelines[0].start_ns(0), 10'000);
  EXPECT_EQ(set.timelines[3].start_ns(0), 103'000);
  EXPECT_TRUE(set.warnings.empty());
}

TEST_F(TraceSetTest, a_rank_without_one_of_the_windows_gets_the_nearest) {
  for (const char* time : {"10", "100", "200"})
    write_text(scratch_ / "flat" / ("rank-0." + std::string(time) + ".json"),
               trace_of(kernel_at(time), 0, 2));
  write_text(scratch_ / "flat" / "rank-1.json", trace_of(kernel_at("104"), 1, 2));

  const TraceSet set = load();

  EXPECT_EQ(windows_of(set), " 1/0 2/0 2/1 3/0");
  ASSERT_EQ(set.warnings.size(), 1u);
  EXPECT_THAT(set.warnings[0], HasSubstr("different numbers of traces in flat"));
}

TEST_F(TraceSetTest, files_of_one_process_without_a_rank_are_one_rank) {
  const std::string first = R"({"traceEvents":[)" + kernel_at("10") + "]}";
  const std::string second = R"({"traceEvents":[)" + kernel_at("100") + "]}";
  write_text(scratch_ / "flat" / "host_1234.170000000000001.pt.trace.json", first);
  write_text(scratch_ / "flat" / "host_1234.170000000000002.pt.trace.json", second);
  write_text(scratch_ / "flat" / "host_1235.170000000000002.pt.trace.json", first);

  EXPECT_EQ(windows_of(load()), " 1/0 1/1 2/0");
}

TEST_F(TraceSetTest, what_is_no_rank_is_said_and_the_name_of_the_file_counts) {
  for (const char* found : {"-1", "1000000000", "\"abc\"", "2.5", "\"2.5\"", "null", "[]"}) {
    write_text(scratch_ / "rank-3.json", R"({"distributedInfo":{"rank":)" + std::string(found) +
                                             R"(},"traceEvents":[)" + kernel_at("10") + "]}");

    const TraceSet set = load();

    EXPECT_EQ(set.timelines[0].info.rank, 3) << found;
    EXPECT_THAT(set.warnings, Contains(HasSubstr("rank-3.json: distributedInfo: expected a rank "
                                                 "from 0 to 1048575, found " +
                                                 std::string(found))));
  }
  write_text(scratch_ / "rank-3.json", R"({"distributedInfo":{"rank":"2","world_size":2},
    "traceEvents":[)" + kernel_at("10") + "]}");
  const TraceSet set = load();
  EXPECT_EQ(set.timelines[0].info.rank, 2);
  EXPECT_THAT(set.warnings, Contains(HasSubstr("rank 2 of 2: one of both is wrong")));
}

TEST_F(TraceSetTest, traces_with_other_names_are_found_or_said_to_be_left_out) {
  write_text(scratch_ / "trace0.json", trace_of(kernel_at("10"), 0, 2));
  write_text(scratch_ / "rank-1.json", trace_of(kernel_at("10"), 1, 2));
  EXPECT_EQ(load().timelines.size(), 2u);
  EXPECT_TRUE(look_for_traces({scratch_.path()}).left_out.empty());

  const auto named = write_text(scratch_ / "a.pt.trace.json", trace_of(kernel_at("10"), 0, 2));
  write_text(scratch_ / "flight" / "rank_00000.json", "{}");

  EXPECT_EQ(load().timelines.size(), 1u);
  EXPECT_THAT(look_for_traces({scratch_.path()}).left_out,
              ::testing::ElementsAre(scratch_ / "rank-1.json", scratch_ / "trace0.json"));
  EXPECT_TRUE(look_for_traces({named}).left_out.empty()) << "nobody asked for the others";
}

TEST_F(TraceSetTest, a_report_beside_its_export_is_not_left_out) {
  make_database("a.sqlite", kOldExport);
  write_text(scratch_ / "a.nsys-rep", "report");
  EXPECT_TRUE(look_for_traces({scratch_.path()}).left_out.empty());
  write_text(scratch_ / "b.nsys-rep", "report");
  EXPECT_THAT(look_for_traces({scratch_.path()}).left_out,
              ::testing::ElementsAre(scratch_ / "b.nsys-rep"));
}

TEST_F(TraceSetTest, a_missing_rank_is_a_warning) {
  write_text(scratch_ / "rank-0.json", trace_of(complete_event("kernel", "k", "1", "1"), 0, 3));
  write_text(scratch_ / "rank-2.json", trace_of(complete_event("kernel", "k", "1", "1"), 2, 3));

  const TraceSet set = load();

  EXPECT_THAT(set.ranks(), ::testing::ElementsAre(0, 2));
  ASSERT_EQ(set.warnings.size(), 1u);
  EXPECT_THAT(set.warnings[0], HasSubstr("1 of 3"));
}

}  // namespace
}  // namespace sidestream::trace
