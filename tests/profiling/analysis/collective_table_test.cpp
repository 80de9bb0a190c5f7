// Sums of collectives over ranks, groups and sizes, on traces by hand.
#include "profiling/analysis/collective_table.hpp"

#include <gtest/gtest.h>

#include <random>

#include "profiling/analysis/analysis.hpp"
#include "profiling/report/text_report.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/profiling/trace/trace_text.hpp"

namespace sidestream::analysis {
namespace {

using test::complete_event;

class CollectiveTableTest : public ::testing::Test {
 protected:
  // A step of 20 ms with one collective of these bytes, from start_us to 10 ms.
  void add_rank(int rank, int ranks, const std::string& name, const std::string& group, int bytes,
                int start_us) {
    const std::string events =
        complete_event("user_annotation", "ProfilerStep#3", "0", "20000") + "," +
        complete_event("kernel", "ncclDevKernel_" + name, std::to_string(start_us),
                       std::to_string(10'000 - start_us),
                       R"("stream":9,"Collective name":")" + name + R"(","In msg nelems":)" +
                           std::to_string(bytes) + R"(,"dtype":"Byte","Process Group Name":")" +
                           group + R"(","Seq":1)");
    test::write_text(scratch_ / ("rank-" + std::to_string(rank) + ".json"),
                     test::trace_of(events, rank, ranks));
  }

  std::vector<CollectiveRow> table() {
    set_ = trace::load_traces(trace::find_traces({scratch_.path()}));
    return analyse(set_, 1).collectives;
  }

  core::ScratchFolder scratch_;
  trace::TraceSet set_;
};

TEST_F(CollectiveTableTest, ranks_that_send_different_sizes_are_in_one_row) {
  add_rank(0, 2, "all_gather", "0", 370, 4'000);
  add_rank(1, 2, "all_gather", "0", 400, 7'000);

  const auto rows = table();

  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].bytes, 400);
  EXPECT_EQ(rows[0].count, 1);
  EXPECT_EQ(rows[0].total_ns, 4'500'000);
  EXPECT_EQ(rows[0].transfer_ns, 3'000'000);
  EXPECT_EQ(rows[0].wait_ns, 1'500'000);
  EXPECT_DOUBLE_EQ(rows[0].alg_gb_per_s.value(), 770 / 3e6);
}

TEST_F(CollectiveTableTest, groups_beside_each_other_do_not_add_up) {
  for (int rank = 0; rank < 4; ++rank)
    add_rank(rank, 4, "allreduce", rank < 2 ? "0" : "1", 1000, rank % 2 == 0 ? 5'000 : 7'000);

  const auto rows = table();

  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].count, 1);
  EXPECT_EQ(rows[0].total_ns, 4'000'000);
  EXPECT_EQ(rows[0].transfer_ns, 3'000'000);
  EXPECT_EQ(rows[0].wait_ns, 1'000'000);
  EXPECT_EQ(*rows[0].transfer_ns + *rows[0].wait_ns, rows[0].total_ns);
  EXPECT_DOUBLE_EQ(rows[0].alg_gb_per_s.value(), 1000 / 3e6);
}

// A host rank: 40 us of a collective beside forward, 30 us that nothing hides, 10 of them while
// data is fetched; and a collective between steps, which no budget of a step has in it.
TEST_F(CollectiveTableTest, overlapped_exposed_and_blocking_are_those_of_steps) {
  const std::string bucket = R"("bucket":2,"payload bytes":1000,"sequence":)";
  const auto range = [](const std::string& name, const std::string& start,
                        const std::string& time) {
    return complete_event("user_annotation", name, start, time);
  };
  const auto flight = [&](const std::string& start, const std::string& time,
                          const std::string& sequence) {
    std::string event =
        complete_event("user_annotation", "allreduce", start, time, bucket + sequence);
    return event.replace(event.find("\"tid\":1"), 7, "\"tid\":99");
  };
  test::write_text(scratch_ / "rank-0.json",
                   test::trace_of(range("ProfilerStep#3", "0", "100") + "," +
                                  range("forward", "10", "50") + "," + range("data", "70", "10") +
                                  "," + flight("20", "70", "1") + "," + flight("200", "50", "2")));

  const auto rows = table();

  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].bucket, 2);
  EXPECT_EQ(rows[0].count, 2);
  EXPECT_EQ(rows[0].total_ns, 120'000);
  EXPECT_EQ(rows[0].overlapped_ns, 40'000);
  EXPECT_EQ(rows[0].exposed_ns, 30'000);
  EXPECT_EQ(rows[0].blocking_ns, 20'000);
  const std::string text = report::text_report(analyse(set_, 1), {}, {.width_columns = 200});
  EXPECT_NE(text.find("exposed and hidden in the steps, the rest of the whole trace"),
            std::string::npos)
      << text;
}

// A forward that waits for the weights of its layers computes nothing meanwhile, and the collective
// that it waits for is one.
TEST_F(CollectiveTableTest, waits_for_weights_are_exposed_communication_and_no_collectives) {
  const std::string bucket = R"("bucket":2,"payload bytes":1000,"sequence":1)";
  std::string flight = complete_event("user_annotation", "all_gather", "5", "55", bucket);
  flight.replace(flight.find("\"tid\":1"), 7, "\"tid\":99");
  const auto range = [](const std::string& name, const std::string& start,
                        const std::string& time) {
    return complete_event("user_annotation", name, start, time);
  };
  test::write_text(
      scratch_ / "rank-0.json",
      test::trace_of(range("ProfilerStep#3", "0", "100") + "," + range("forward", "10", "80") +
                     "," + range("weight_wait", "30", "30") + "," + flight));

  const auto rows = table();

  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].count, 1);
  EXPECT_EQ(rows[0].total_ns, 55'000);
  EXPECT_EQ(rows[0].overlapped_ns, 20'000);
  EXPECT_EQ(rows[0].exposed_ns, 35'000);
  const Analysis all = analyse(set_, 1);
  EXPECT_EQ(all.ranks.at(0).activity.compute.length_ns(), 50'000);
}

// Whatever overlaps what: the rows add up to the communication of the steps.
TEST_F(CollectiveTableTest, rows_of_collectives_beside_each_other_add_up_to_the_steps) {
  std::mt19937 random(7);
  const auto below = [&](int limit) { return static_cast<int>(random() % limit); };
  for (int round = 0; round < 40; ++round) {
    for (int rank = 0; rank < 3; ++rank) {
      std::string events = complete_event("user_annotation", "ProfilerStep#1", "0", "500") + "," +
                           complete_event("user_annotation", "ProfilerStep#2", "500", "500");
      for (int i = 0; i < 6; ++i)
        events += "," + complete_event("user_annotation", "forward", std::to_string(below(1000)),
                                       std::to_string(below(100)));
      for (int i = 0; i < 12; ++i) {
        std::string event =
            complete_event("user_annotation", i % 3 == 0 ? "all_gather" : "allreduce",
                           std::to_string(below(900)) + ".0" + std::to_string(below(90) + 10),
                           std::to_string(below(99)),
                           R"("payload bytes":1000,"sequence":)" + std::to_string(i) +
                               R"(,"bucket":)" + std::to_string(i % 4));
        events +=
            "," + event.replace(event.find("\"tid\":1"), 7, "\"tid\":" + std::to_string(90 + i));
      }
      test::write_text(scratch_ / ("rank-" + std::to_string(rank) + ".json"),
                       test::trace_of(events, rank, 3));
    }
    std::int64_t exposed_ns = 0, overlapped_ns = 0;
    for (const CollectiveRow& row : table()) {
      exposed_ns += row.exposed_ns;
      overlapped_ns += row.overlapped_ns;
      EXPECT_LE(row.blocking_ns, row.exposed_ns);
    }
    StepBudget sum;
    const std::vector<RankView> ranks = view_ranks(set_, 1);
    for (const StepRow* step : plain_steps(ranks)) {  // not the first one
      sum.exposed_comm_ns += step->budget.exposed_comm_ns;
      sum.overlapped_comm_ns += step->budget.overlapped_comm_ns;
    }
    EXPECT_GT(exposed_ns, 0);
    EXPECT_EQ(exposed_ns, sum.exposed_comm_ns / 3) << round;
    EXPECT_EQ(overlapped_ns, sum.overlapped_comm_ns / 3) << round;
  }
}

TEST_F(CollectiveTableTest, time_that_two_collectives_share_is_of_the_one_that_began_first) {
  const auto flight = [](const std::string& bucket, const std::string& start) {
    std::string event =
        complete_event("user_annotation", "allreduce", start, "50",
                       R"("payload bytes":1000,"sequence":)" + bucket + R"(,"bucket":)" + bucket);
    return event.replace(event.find("\"tid\":1"), 7, "\"tid\":9" + bucket);
  };
  test::write_text(scratch_ / "rank-0.json",
                   test::trace_of(complete_event("user_annotation", "ProfilerStep#3", "0", "100") +
                                  "," + flight("1", "10") + "," + flight("2", "30")));

  const auto rows = table();

  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].bucket, 1);
  EXPECT_EQ(rows[0].exposed_ns, 50'000);
  EXPECT_EQ(rows[1].exposed_ns, 20'000);
  EXPECT_EQ(rows[1].total_ns, 50'000) << "its own length";
}

// As our trainer does it: the order of the buckets is built anew after the first step.
TEST_F(CollectiveTableTest, a_bucket_that_changes_its_size_has_two_rows_and_it_is_said) {
  std::string events;
  for (int step = 2; step <= 4; ++step) {
    const int at_us = 1000 * step;
    events +=
        (step == 2 ? "" : ",") +
        complete_event("user_annotation", "ProfilerStep#" + std::to_string(step),
                       std::to_string(at_us), "900") +
        "," +
        complete_event("user_annotation", "allreduce", std::to_string(at_us + 10), "50",
                       R"("bucket":0,"payload bytes":)" + std::to_string(step == 2 ? 500 : 700) +
                           R"(,"sequence":)" + std::to_string(step));
  }
  test::write_text(scratch_ / "rank-0.json", test::trace_of(events));
  set_ = trace::load_traces(trace::find_traces({scratch_.path()}));

  const Analysis all = analyse(set_, 1);

  ASSERT_EQ(all.collectives.size(), 2u);
  EXPECT_EQ(all.collectives[0].count + all.collectives[1].count, 3);
  EXPECT_TRUE(have_sizes_changed(all.collectives));
  EXPECT_NE(report::text_report(all, {}, {}).find("a row for each size"), std::string::npos);
  EXPECT_FALSE(have_sizes_changed({all.collectives[0]}));
}

// Over MPI the host carries a device's collectives: 40 us of one beside a kernel, 60 while the
// device is idle.
TEST_F(CollectiveTableTest, collectives_of_a_host_for_its_device_are_found) {
  const auto event = [](const std::string& category, const std::string& name,
                        const std::string& start, const std::string& time,
                        const std::string& arguments = "") {
    return complete_event(category, name, start, time, arguments);
  };
  std::string flight = event("user_annotation", "allreduce", "110", "100",
                             R"("bucket":2,"payload bytes":1000,"sequence":1)");
  flight.replace(flight.find("\"tid\":1"), 7, "\"tid\":99");
  const std::string events =
      event("user_annotation", "ProfilerStep#3", "0", "300") + "," +
      event("cuda_runtime", "cudaLaunchKernel", "1", "5", R"("correlation":1)") + "," +
      event("kernel", "gemm", "50", "100", R"("stream":7,"correlation":1)") + "," + flight;
  for (int rank = 0; rank < 2; ++rank)
    test::write_text(scratch_ / ("rank-" + std::to_string(rank) + ".json"),
                     test::trace_of(events, rank, 2));
  set_ = trace::load_traces(trace::find_traces({scratch_.path()}));

  const Analysis all = analyse(set_, 1);

  for (const std::string& warning : set_.warnings)
    EXPECT_EQ(warning.find("not one collective"), std::string::npos) << warning;
  ASSERT_EQ(all.collectives.size(), 1u);
  EXPECT_EQ(all.collectives[0].bucket, 2);
  EXPECT_EQ(all.collectives[0].exposed_ns, 60'000);
  EXPECT_EQ(all.collectives[0].overlapped_ns, 40'000);
  EXPECT_EQ(all.matches.matched.size(), 1u);
  EXPECT_EQ(all.ranks.at(0).steps.at(0).idle.comm_ns, 60'000);
}

}  // namespace
}  // namespace sidestream::analysis
