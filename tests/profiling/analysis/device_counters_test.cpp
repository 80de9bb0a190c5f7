#include "profiling/analysis/device_counters.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "profiling/analysis/analysis.hpp"
#include "profiling/report/json_report.hpp"
#include "profiling/report/text_report.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/database.hpp"

namespace sidestream::analysis {
namespace {

// A step from 10 to 400 ns, with a kernel on each of two devices of process 1.
constexpr const char* kExport =
    "CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
    "INSERT INTO StringIds VALUES (1,'gemm_hmma');"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT,end INT,deviceId INT,streamId INT,"
    "correlationId INT,globalPid INT,shortName INT);"
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100,200,0,7,1,16777216,1),"
    "(100,200,1,7,2,16777216,1);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT,end INT,globalTid INT,correlationId INT,"
    "nameId INT);"
    "CREATE TABLE NVTX_EVENTS(start INT,end INT,eventType INT,text TEXT,globalTid INT);"
    "INSERT INTO NVTX_EVENTS VALUES (10,400,59,'ProfilerStep#5',16777217);";

// The process sees GPU 3 as device 0 and GPU 1 as device 1. Types have the GPU in their low byte.
// Metric by metric, and not in the order of time.
constexpr const char* kCounters =
    "CREATE TABLE TARGET_INFO_CUDA_DEVICE(gpuId INT,cudaId INT,pid INT);"
    "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0,0,99),(3,0,1),(1,1,1);"
    "CREATE TABLE TARGET_INFO_GPU_METRICS(typeId INT,sourceId INT,typeName TEXT,metricId INT,"
    "metricName TEXT);"
    "INSERT INTO TARGET_INFO_GPU_METRICS VALUES "
    "(65539,5,'GPU',0,'SMs Active [Throughput %]'),"
    "(65539,5,'GPU',1,'Tensor Active [Cycles Active]'),"
    "(65539,5,'GPU',2,'Tensor Active [Throughput %]'),"
    "(65539,5,'GPU',3,'DRAM Read Bandwidth [Throughput %]'),"
    "(65539,5,'GPU',4,'DRAM Write Bandwidth [Throughput %]'),"
    "(65539,5,'GPU',5,'Unallocated Warps in Active SMs [Throughput %]'),"
    "(65537,5,'GPU',0,'Tensor Active / FP16 Active [Throughput %]'),"
    "(65537,5,'GPU',2,'SM Active [Throughput %]');"
    "CREATE TABLE GPU_METRICS(rawTimestamp INT,timestamp INT,typeId INT,metricId INT,value INT);"
    "INSERT INTO GPU_METRICS VALUES "
    "(0,500,65539,0,90),(0,300,65539,0,60),(0,200,65539,0,100),(0,100,65539,0,80),(0,5,65539,0,90),"
    "(0,5,65539,2,9),(0,100,65539,2,30),(0,200,65539,2,50),(0,300,65539,2,40),"
    "(0,200,65539,1,77777),(0,200,65539,3,20),(0,200,65539,4,10),(0,200,65539,5,44),"
    "(0,100,65537,0,0),(0,200,65537,0,0),(0,300,65537,0,0),"
    "(0,100,65537,2,40),(0,200,65537,2,40),(0,300,65537,2,40);";

class DeviceCountersTest : public ::testing::Test {
 protected:
  const Analysis& look(const std::string& script) {
    const auto file = test::make_database(scratch_ / "a.sqlite", script);
    set_ = trace::load_traces(trace::find_traces({file}), {.threads = 1});
    return all_ = analyse(set_, 1);
  }

  core::ScratchFolder scratch_;
  trace::TraceSet set_;
  Analysis all_;
};

TEST_F(DeviceCountersTest, samples_inside_of_a_step_are_of_the_gpu_that_the_rank_has) {
  const Analysis& all = look(std::string(kExport) + kCounters);

  ASSERT_EQ(all.device_counters.of_steps.size(), 2u);
  const DeviceCounters& one = all.device_counters.of_steps[0].at(0);
  EXPECT_EQ(one.samples, 3);
  EXPECT_DOUBLE_EQ(one.sm_active.value(), 0.8);
  EXPECT_DOUBLE_EQ(one.tensor_active.value(), 0.4);
  EXPECT_DOUBLE_EQ(one.dram_read.value(), 0.2);
  EXPECT_DOUBLE_EQ(one.dram_written.value(), 0.1);
  const DeviceCounters& other = all.device_counters.of_ranks.at(1);
  EXPECT_DOUBLE_EQ(other.sm_active.value(), 0.4);
  EXPECT_DOUBLE_EQ(other.tensor_active.value(), 0);
  EXPECT_FALSE(other.dram_read.has_value());
}

TEST_F(DeviceCountersTest, the_tensor_core_share_is_by_counters_where_there_are_any) {
  EXPECT_EQ(look(kExport).utilisation.tensor_core_source, "kernel names");

  std::filesystem::remove(scratch_ / "a.sqlite");
  const Analysis& all = look(std::string(kExport) + kCounters);

  EXPECT_DOUBLE_EQ(all.utilisation.tensor_core_share.value(), 0.4 / (0.8 + 0.4));
  EXPECT_THAT(all.utilisation.tensor_core_source, ::testing::StartsWith("counters"));
  const auto report = report::json_summary(all, {});
  EXPECT_DOUBLE_EQ(report["steps"][0]["gpu_counters"]["tensor_active"].get<double>(), 0.4);
  EXPECT_DOUBLE_EQ(report["metrics"]["gpu_counters"][0]["tensor_core_share"].get<double>(), 0.5);
  EXPECT_THAT(report::text_report(all, {}, {.width_columns = 300}),
              ::testing::AllOf(::testing::HasSubstr("Counters of the GPUs"),
                               ::testing::HasSubstr("(by counters")));
}

TEST_F(DeviceCountersTest, tables_that_cannot_be_read_are_said_and_the_rest_is_used) {
  const Analysis& all = look(std::string(kExport) +
                             "CREATE TABLE GPU_METRICS(timestamp INT,value INT);"
                             "INSERT INTO GPU_METRICS VALUES (100,80);");

  EXPECT_EQ(all.utilisation.tensor_core_source, "kernel names");
  EXPECT_TRUE(all.device_counters.of_ranks.empty());
  EXPECT_THAT(set_.warnings,
              ::testing::IsSupersetOf({::testing::HasSubstr("GPU_METRICS has no column metricId"),
                                       ::testing::HasSubstr("no table TARGET_INFO_GPU_METRICS")}));
}

}  // namespace
}  // namespace sidestream::analysis
