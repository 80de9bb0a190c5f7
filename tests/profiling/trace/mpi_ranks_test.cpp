// Which ranks the processes of an export of Nsight Systems are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "profiling/trace/trace_set.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/database.hpp"

namespace sidestream::trace {
namespace {

// Processes 1 and 2, and what says their ranks: a table, or names of threads.
std::string two_processes(const std::string& place, const std::string& first,
                          const std::string& second) {
  const std::string ranges =
      "CREATE TABLE NVTX_EVENTS(start INT,end INT,eventType INT,text TEXT,globalTid INT);"
      "INSERT INTO NVTX_EVENTS VALUES (10,400,59,'of process 1',16777217),"
      "(10,400,59,'of process 2',33554433);";
  if (place == "names")
    return ranges + "INSERT INTO NVTX_EVENTS VALUES (0,NULL,39,'MPI Rank " + first +
           "',16777217),(0,NULL,39,'MPI Rank " + second + "',33554433);";
  return ranges + "CREATE TABLE MPI_RANKS(globalTid INT,rank INT);INSERT INTO MPI_RANKS VALUES " +
         "(16777217," + first + "),(33554433," + second + ");";
}

TEST(MpiRanksTest, ranks_of_mpi_are_those_of_the_processes) {
  const core::ScratchFolder scratch;
  for (const std::string place : {"table", "names"}) {
    test::make_database(scratch / (place + ".sqlite"), two_processes(place, "3", "1"));

    const TraceSet set = load_traces(find_traces({scratch / (place + ".sqlite")}));

    EXPECT_THAT(set.ranks(), ::testing::ElementsAre(1, 3)) << place;
    EXPECT_EQ(set.timelines.at(0).name(0), "of process 2") << place;
    EXPECT_EQ(set.world_size, 4) << place;
  }
}

TEST(MpiRanksTest, ranks_that_no_job_has_are_not_believed) {
  const core::ScratchFolder scratch;
  for (const std::string place : {"table", "names"}) {
    for (const std::string number : {"1048576", "2147483647", "4294967297", "-1", "NULL"}) {
      const std::string file = place + number + ".sqlite";
      test::make_database(scratch / file, two_processes(place, number, "0"));

      const TraceSet set = load_traces(find_traces({scratch / file}));

      EXPECT_THAT(set.ranks(), ::testing::ElementsAre(0, 1)) << file;
      EXPECT_EQ(set.world_size, 2) << file;
    }
  }
}

}  // namespace
}  // namespace sidestream::trace
