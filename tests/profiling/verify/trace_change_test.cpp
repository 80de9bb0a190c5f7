#include "profiling/verify/trace_change.hpp"

#include <gtest/gtest.h>

#include "tests/profiling/analysed.hpp"

namespace sidestream::verify {
namespace {

using test::Analysed;

// A step of `length` microseconds with a product and a collective behind it.
std::string step(int number, int start, int length, int product, int collective) {
  const auto text = [](int value) { return std::to_string(value); };
  return test::complete_event("user_annotation", "ProfilerStep#" + text(number), text(start),
                              text(length)) +
         "," + test::complete_event("kernel", "gemm", text(start + 1), text(product)) + "," +
         test::complete_event("kernel", "ncclDevKernel_AllReduce", text(start + 1 + product),
                              text(collective));
}

Part part_named(const std::vector<Part>& parts, const std::string& name) {
  for (const Part& part : parts) {
    if (part.name == name) return part;
  }
  ADD_FAILURE() << name << " is not there";
  return {};
}

double change_of(const std::vector<Part>& parts, const std::string& name) {
  return part_named(parts, name).change_ms();
}

Part sum_of(const std::vector<Part>& parts) {
  Part sum;
  for (const Part& part : parts) {
    sum.base_ms += part.base_ms;
    sum.fresh_ms += part.fresh_ms;
  }
  return sum;
}

TEST(TraceChangeTest, parts_add_up_to_the_change_of_the_step) {
  const Analysed base(step(2, 1000, 100, 40, 30) + "," + step(3, 2000, 100, 40, 30));
  const Analysed fresh(step(2, 1000, 80, 40, 10) + "," + step(3, 2000, 80, 40, 10));

  const TraceChange change = compare_traces(base.all, fresh.all);

  double sum = 0;
  for (const Part& part : change.parts) sum += part.change_ms();
  EXPECT_EQ(change.base_steps, 2);
  EXPECT_NEAR(sum, -0.020, 1e-9);
  EXPECT_NEAR(change_of(change.parts, "exposed communication"), -0.020, 1e-9);
  EXPECT_NEAR(change_of(change.operations, "ncclDevKernel_AllReduce"), -0.020, 1e-9);
  EXPECT_EQ(change.operations.front().name, "ncclDevKernel_AllReduce");
}

// The first step is in no mean, so it is in no part either.
TEST(TraceChangeTest, operations_and_collectives_are_of_the_steps_of_the_mean) {
  const std::string plain = step(2, 2000, 100, 40, 30) + "," + step(3, 3000, 100, 40, 30);
  const Analysed base(step(0, 1000, 900, 400, 300) + "," + plain), fresh(plain);

  const TraceChange change = compare_traces(base.all, fresh.all);

  EXPECT_NEAR(part_named(change.operations, "gemm").base_ms, 0.040, 1e-9);
  EXPECT_NEAR(part_named(change.operations, "gemm").change_ms(), 0, 1e-9);
  ASSERT_EQ(change.collectives.size(), 1u);
  EXPECT_NEAR(change.collectives.front().base_ms, 0.030, 1e-9);
  EXPECT_NEAR(change.collectives.front().fresh_ms, 0.030, 1e-9);
  EXPECT_NEAR(sum_of(change.operations).base_ms, 0.100, 1e-9);
}

// A product, then three kinds of collectives on streams of their own, for so many microseconds
// each.
std::string three_collectives(int reduce, int gather, int scatter) {
  const auto kernel = [](const char* name, int start, int length, int stream) {
    return "," + test::complete_event("kernel", name, std::to_string(start), std::to_string(length),
                                      R"("stream":)" + std::to_string(stream));
  };
  return test::complete_event("user_annotation", "ProfilerStep#2", "1000", "200") +
         kernel("gemm", 1001, 40, 7) + kernel("ncclDevKernel_AllReduce", 1031, reduce, 8) +
         kernel("ncclDevKernel_AllGather", 1061, gather, 9) +
         kernel("ncclDevKernel_ReduceScatter", 1110, scatter, 10);
}

// All-reduce hides 10 us behind the product. On the base it is in flight with the gather for 10 us,
// which are its own.
TEST(TraceChangeTest, collectives_add_up_to_the_change_of_exposed_communication) {
  const Analysed base(three_collectives(40, 30, 20)), fresh(three_collectives(20, 30, 5));

  const TraceChange change = compare_traces(base.all, fresh.all);

  ASSERT_EQ(change.collectives.size(), 3u);
  const Part &reduce = change.collectives[0], &scatter = change.collectives[1],
             &gather = change.collectives[2];
  EXPECT_EQ(reduce.name + ", " + scatter.name + ", " + gather.name,
            "allreduce, reduce_scatter, all_gather");
  EXPECT_NEAR(reduce.base_ms, 0.030, 1e-9);
  EXPECT_NEAR(reduce.fresh_ms, 0.010, 1e-9);
  EXPECT_NEAR(scatter.change_ms(), 0.005 - 0.020, 1e-9);
  EXPECT_NEAR(gather.change_ms(), 0.030 - 0.020, 1e-9);
  const Part sum = sum_of(change.collectives),
             exposed = part_named(change.parts, "exposed communication");
  EXPECT_NEAR(sum.base_ms, 0.070, 1e-9);
  EXPECT_NEAR(exposed.base_ms, 0.070, 1e-9);
  EXPECT_NEAR(sum.change_ms(), -0.025, 1e-9);
  EXPECT_NEAR(exposed.change_ms(), -0.025, 1e-9);

  const auto largest = compare_traces(base.all, fresh.all, 1).collectives;
  ASSERT_EQ(largest.size(), 2u);
  EXPECT_EQ(largest[1].name, "the other 2");
  EXPECT_NEAR(sum_of(largest).change_ms(), -0.025, 1e-9);
}

// Other parameters are in it: its time is compared with nothing.
TEST(TraceChangeTest, a_bucket_of_another_size_is_another_one) {
  const auto with_bucket = [](const std::string& bytes) {
    return test::complete_event("user_annotation", "ProfilerStep#2", "1000", "100") + "," +
           test::complete_event("user_annotation", "forward", "1000", "60") + "," +
           test::complete_event("user_annotation", "allreduce", "1075", "10",
                                R"("bucket":0,"payload bytes":)" + bytes + R"(,"sequence":1)");
  };
  const Analysed base(with_bucket("1000")), same(with_bucket("1000")), other(with_bucket("15000"));
  const auto names = [](const TraceChange& change) {
    std::string text;
    for (const Part& one : change.collectives) text += one.name + "; ";
    return text;
  };

  EXPECT_NE(names(compare_traces(base.all, same.all)).find("bucket 0 (1 KB)"), std::string::npos)
      << names(compare_traces(base.all, same.all));
  const std::string both = names(compare_traces(base.all, other.all));
  EXPECT_NE(both.find("bucket 0 (1 KB)"), std::string::npos) << both;
  EXPECT_NE(both.find("bucket 0 (15 KB)"), std::string::npos) << both;
}

TEST(TraceChangeTest, rest_has_a_name_and_nothing_is_lost) {
  const Analysed base(step(2, 1000, 100, 40, 30)), fresh(step(2, 1000, 80, 35, 10));

  const TraceChange change = compare_traces(base.all, fresh.all, 1);

  ASSERT_EQ(change.operations.size(), 3u);
  EXPECT_EQ(change.operations[1].name, "the other 1");
  EXPECT_NEAR(change.operations[1].change_ms(), -0.005, 1e-9);
  EXPECT_EQ(change.operations.back().name, "no operation, or several at once");
  EXPECT_NEAR(sum_of(change.operations).base_ms, 0.100, 1e-9);
  EXPECT_NEAR(sum_of(change.operations).fresh_ms, 0.080, 1e-9);
}

// The collective runs beside the product from its 10th microsecond on.
TEST(TraceChangeTest, a_rest_below_zero_says_that_operations_ran_beside_each_other) {
  const auto beside = [](int product) {
    return test::complete_event("user_annotation", "ProfilerStep#2", "1000", "100") + "," +
           test::complete_event("kernel", "gemm", "1001", std::to_string(product)) + "," +
           test::complete_event("kernel", "ncclDevKernel_AllReduce", "1011", "60", R"("stream":9)");
  };
  const Analysed base(beside(80)), fresh(beside(20));

  const TraceChange change = compare_traces(base.all, fresh.all);

  EXPECT_NEAR(change.operations.back().base_ms, -0.040, 1e-9);
  EXPECT_NEAR(change.operations.back().fresh_ms, 0.020, 1e-9);
  EXPECT_EQ(change.operations.back().name,
            "no operation; below 0: several ran at once, and count twice");
}

// Reading holds a copy to the device inside; the collective behind backward is in no phase.
TEST(TraceChangeTest, phases_add_up_and_the_inner_one_counts) {
  const auto phase = [](const char* name, int start, int length) {
    return "," + test::complete_event("user_annotation", name, std::to_string(start),
                                      std::to_string(length));
  };
  const auto trace = [&](int backward) {
    return step(2, 1000, 100, 40, 30) + phase("data", 1000, 20) + phase("h2d", 1005, 5) +
           phase("forward", 1020, 10) + phase("backward", 1030, backward) +
           phase("forward", 3000, 500);  // outside of every step
  };
  const Analysed base(trace(25)), fresh(trace(15));

  const TraceChange change = compare_traces(base.all, fresh.all);

  EXPECT_NEAR(sum_of(change.phases).base_ms, 0.100, 1e-9);
  EXPECT_NEAR(sum_of(change.phases).fresh_ms, 0.100, 1e-9);
  EXPECT_NEAR(part_named(change.phases, "data").base_ms, 0.015, 1e-9);
  EXPECT_NEAR(part_named(change.phases, "h2d").base_ms, 0.005, 1e-9);
  EXPECT_NEAR(part_named(change.phases, "backward").change_ms(), -0.010, 1e-9);
  EXPECT_NEAR(part_named(change.phases, "forward").base_ms, 0.010, 1e-9);
  EXPECT_NEAR(part_named(change.phases, "collectives outside the phases").base_ms, 0.016, 1e-9);
  EXPECT_NEAR(part_named(change.phases, "outside the phases").change_ms(), 0, 1e-9);
}

TEST(TraceChangeTest, without_ranges_there_are_no_phases) {
  const Analysed base(step(2, 1000, 100, 40, 30));
  EXPECT_TRUE(compare_traces(base.all, base.all).phases.empty());
}

TEST(TraceChangeTest, without_steps_there_is_nothing_to_say) {
  const Analysed base(test::complete_event("cpu_op", "x", "1", "1"));
  EXPECT_TRUE(compare_traces(base.all, base.all).parts.empty());
}

}  // namespace
}  // namespace sidestream::verify
