// What the rules know of collectives: whose bytes they carry, and what of their time is transfer.
#include <gtest/gtest.h>

#include <string>

#include "tests/profiling/advice/facts_maker.hpp"
#include "tests/profiling/advice/traced_facts.hpp"

namespace sidestream::advice {
namespace {

using test::complete_event;

// One rank of four; a gather of 1000 bytes, whose group has so many ranks.
Facts gather_of_group(const std::string& group_size) {
  const std::string events =
      complete_event("user_annotation", "ProfilerStep#3", "0", "1000") + "," +
      complete_event("kernel", "ncclDevKernel_AllGather_RING_LL", "100", "200",
                     R"("stream":9,"Collective name":"all_gather","In msg nelems":1000,)"
                     R"("dtype":"Byte","Seq":1)" +
                         group_size);
  return facts_of_text(test::trace_of(events, 0, 4));
}

TEST(CollectiveFactsTest, a_gather_leaves_the_inputs_of_its_own_group) {
  EXPECT_DOUBLE_EQ(gather_of_group(R"(,"Group size":2)").collectives.value().gathered_bytes, 2000);
  EXPECT_DOUBLE_EQ(gather_of_group("").collectives.value().gathered_bytes, 4000)
      << "all ranks, where the trace does not say";
}

// 30 ms of exposed communication, of which 12 ms are known to be transfers; the rest is waiting, or
// collectives that nobody could match.
TEST(CollectiveFactsTest, what_is_not_matched_may_all_be_transfer) {
  Facts facts = step_of(100);
  facts.step->compute_ns = 60e6;
  facts.step->overlapped_comm_ns = 30e6;
  facts.step->exposed_comm_ns = 30e6;
  facts.collectives = CollectiveFacts{.per_step = 6, .bytes = 1e7, .transfer_ns = 12e6};
  EXPECT_NEAR(bound_of(advise(facts), "link-bound"), 0.12, 1e-9);
  facts.collectives->unmatched_ns = 10e6;
  EXPECT_NEAR(bound_of(advise(facts), "link-bound"), 0.22, 1e-9);
  facts.collectives->unmatched_ns = 50e6;
  EXPECT_NEAR(bound_of(advise(facts), "link-bound"), 0.3, 1e-9) << "no more than is exposed";
}

}  // namespace
}  // namespace sidestream::advice
