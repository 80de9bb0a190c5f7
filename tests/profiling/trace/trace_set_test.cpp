#include "profiling/trace/trace_set.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <sstream>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::trace {
namespace {

using test::complete_event;
using test::trace_of;
using test::write_text;

class TraceSetTest : public ::testing::Test {
 protected:
  TraceSet load() { return load_traces(find_traces({scratch_.path()})); }

  void make_database(const std::string& name, const std::string& script) {
    sqlite3* database = nullptr;
    sqlite3_open((scratch_ / name).c_str(), &database);
    char* error = nullptr;
    sqlite3_exec(database, script.c_str(), nullptr, nullptr, &error);
    EXPECT_EQ(error, nullptr) << error;
    sqlite3_close(database);
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
  EXPECT_EQ(set.timelines[0].skipped.at("range without an end"), 1u);
  EXPECT_EQ(core::read_file(scratch_ / "a.sqlite"), before);
  EXPECT_THAT(scratch_.names(), ::testing::ElementsAre("a.sqlite"));
}

// Names of the runtime calls of a rank, one after the other.
std::string calls_of(const RankTimeline& timeline) {
  std::string names;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (timeline.kind(row) == Kind::kRuntime) names += std::string(timeline.name(row)) + " ";
  }
  return names;
}

TEST_F(TraceSetTest, a_runtime_call_belongs_to_the_device_that_its_thread_launches_on) {
  make_database("a.sqlite",
                std::string(kOldExport) +
                    "DELETE FROM CUPTI_ACTIVITY_KIND_RUNTIME;"
                    "INSERT INTO StringIds VALUES (4,'first'),(5,'launch0'),(6,'sync0'),"
                    "(7,'launch1'),(8,'sync1'),(9,'other_thread');"
                    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (10,11,16777217,90,4),"
                    "(20,21,16777217,1,5),(30,31,16777217,91,6),(40,41,16777217,2,7),"
                    "(50,51,16777217,92,8),(60,61,16777218,93,9);");

  const TraceSet set = load();

  ASSERT_EQ(set.timelines.size(), 2u);
  EXPECT_EQ(calls_of(set.timelines[0]), "first launch0 sync0 other_thread ");
  EXPECT_EQ(calls_of(set.timelines[1]), "first launch1 sync1 other_thread ");
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

TEST_F(TraceSetTest, a_missing_rank_is_a_warning) {
  write_text(scratch_ / "rank-0.json", trace_of(complete_event("kernel", "k", "1", "1"), 0, 3));
  write_text(scratch_ / "rank-2.json", trace_of(complete_event("kernel", "k", "1", "1"), 2, 3));

  const TraceSet set = load();

  EXPECT_THAT(set.ranks(), ::testing::ElementsAre(0, 2));
  ASSERT_EQ(set.warnings.size(), 1u);
  EXPECT_THAT(set.warnings[0], ::testing::HasSubstr("1 of 3"));
}

TEST(TraceFilesTest, rank_in_name) {
  EXPECT_EQ(rank_in_name("rank-12.json.gz"), 12);
  EXPECT_EQ(rank_in_name("node1_00003.12.pt.trace.json.gz"), 3);
  EXPECT_EQ(rank_in_name("r_4.sqlite"), 4);
  EXPECT_EQ(rank_in_name("trace.json"), std::nullopt);
}

}  // namespace
}  // namespace sidestream::trace
