#include "parallel/bucket_tuner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>
#include <numeric>

#include "tests/parallel/thread_communicator.hpp"

namespace sidestream::test {
namespace {

using parallel::BucketCut;
using parallel::BucketPlan;
using parallel::BucketTuner;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::int64_t kMs = 1'000'000;
constexpr core::DType kFloat = core::DType::kFloat32;

// Eight gradients of 4 MB in order, one every 10 ms, the first a little larger.
constexpr std::size_t kParameters = 8;
const std::vector<std::size_t> kElements = [] {
  std::vector<std::size_t> elements(kParameters, 1'000'000);
  elements.front() += 64;
  return elements;
}();

BucketPlan plan_of(const BucketCut& cut) {
  std::vector<std::size_t> order(kParameters);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return parallel::cut_into_buckets(parallel::make_bucket_plan(kElements, order, kFloat, {}),
                                    kElements, kFloat, cut);
}

// A rank whose clock and collectives are made up: gradients come every 10 ms, on the last rank 5 ms
// later; 4 MB take 4 ms and everyone waits for the last rank, a collective costs 1 ms besides, or
// what the test says.
class MadeUpRank {
 public:
  explicit MadeUpRank(ThreadCommunicator& communicator)
      : rank_(communicator.rank()),
        is_last_(rank_ == communicator.size() - 1),
        tuner_(communicator, [this] { return now_ns_; }) {}

  void backward(const BucketPlan& plan) {
    tuner_.backward_begins(plan);
    for (std::size_t i = 0; i < kParameters; ++i) {
      now_ns_ += 10 * kMs + (i == 0 && is_last_ ? 5 * kMs : 0);
      tuner_.gradient_ready(i);
    }
    std::vector<std::optional<comm::WorkSpan>> spans;
    for (const parallel::Bucket& bucket : plan.buckets) {
      const auto mb = static_cast<std::int64_t>(bucket.elements * sizeof(float) / 1'000'000);
      spans.push_back(comm::WorkSpan{.begin_ns = 0,
                                     .end_ns = latency_ns + mb * kMs + (is_last_ ? 0 : 50 * kMs)});
    }
    tuner_.backward_ended(spans);
  }

  BucketTuner& tuner() { return tuner_; }

  std::int64_t latency_ns = kMs;

 private:
  int rank_;
  bool is_last_;
  std::int64_t now_ns_ = 1'000'000'000;
  BucketTuner tuner_;
};

TEST(BucketTunerTest, all_ranks_find_the_same_cut_from_what_all_have_seen) {
  std::mutex mutex;
  std::vector<BucketCut> cuts;
  run_ranks(3, [&](ThreadCommunicator& communicator) {
    MadeUpRank rank(communicator);
    const BucketPlan plan = plan_of({1, 7});
    std::optional<parallel::BucketProposal> proposal;
    int backwards = 0;
    for (; backwards < 20 && !proposal; ++backwards) {
      rank.backward(plan);
      proposal = rank.tuner().propose(plan, kFloat);
    }
    ASSERT_TRUE(proposal.has_value());
    EXPECT_EQ(backwards, 5);  // the first is not measured, then four
    // 28 MB behind the last gradient at 85 ms, or 4 MB: what waits for others does not count.
    EXPECT_THAT(proposal->reason,
                AllOf(HasSubstr("a collective takes 1.00 ms"), HasSubstr("5.0 instead of 29.0 ms"),
                      HasSubstr("of 85.0 ms")));
    const std::lock_guard lock(mutex);
    cuts.push_back(proposal->cut);
  });
  ASSERT_EQ(cuts.size(), 3u);
  EXPECT_THAT(cuts, Each(cuts[0]));
  EXPECT_EQ(cuts[0].back(), 1u);
}

TEST(BucketTunerTest, a_cut_that_is_good_stays_and_is_looked_at_again_later) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    MadeUpRank rank(communicator);
    BucketPlan plan = plan_of({1, 7});
    std::vector<int> proposed_at;
    for (int backward = 1; backward <= 1000; ++backward) {
      rank.backward(plan);
      if (const auto proposal = rank.tuner().propose(plan, kFloat)) {
        proposed_at.push_back(backward);
        plan = plan_of(proposal->cut);
      }
      if (backward == 600) plan = plan_of({1, 7});  // no longer good, as if the link had changed
    }
    EXPECT_THAT(proposed_at,
                ElementsAre(5, ::testing::AllOf(::testing::Gt(600), ::testing::Lt(900))));
  });
}

// What is proposed to a rank that begins with this cut, over so many backwards.
struct Proposals {
  std::vector<int> at;
  std::vector<std::string> reasons;
  BucketCut last;
};

Proposals proposals_from(MadeUpRank& rank, const BucketCut& cut, int backwards) {
  Proposals found;
  found.last = cut;
  for (int backward = 1; backward <= backwards; ++backward) {
    rank.backward(plan_of(found.last));
    if (const auto proposal = rank.tuner().propose(plan_of(found.last), kFloat)) {
      found.at.push_back(backward);
      found.reasons.push_back(proposal->reason);
      found.last = proposal->cut;
    }
  }
  return found;
}

TEST(BucketTunerTest, buckets_of_one_size_are_judged_by_the_latency_seen_before) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    MadeUpRank rank(communicator);
    EXPECT_THAT(proposals_from(rank, {1, 7}, 300).reasons, ElementsAre(HasSubstr("takes 1.00 ms")));
    EXPECT_THAT(proposals_from(rank, {8}, 600).reasons, ElementsAre(HasSubstr("takes 1.00 ms")));
  });
}

// As MadeUpRank has them, on a link that takes so much longer for a byte.
double end_on_a_slower_link(const BucketCut& cut, double factor) {
  parallel::GradientTimes times;
  for (std::size_t i = 0; i < kParameters; ++i) {
    times.ready_s.push_back(0.015 + 0.01 * static_cast<double>(i));
    times.bytes.push_back(kElements[i] * sizeof(float));
  }
  const parallel::TransferCost link{.latency_s = 1e-3, .s_per_byte = factor * 1e-9};
  if (!cut.empty()) return parallel::end_of_collectives(times, link, cut);
  const parallel::TransferCost seen{.latency_s = 1e-3, .s_per_byte = 1e-9};
  return parallel::end_of_collectives(times, link, parallel::best_cut(times, seen, kParameters));
}

TEST(BucketTunerTest, a_link_that_becomes_a_fifth_slower_leaves_no_more_behind_than_it_must) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    MadeUpRank rank(communicator);
    const BucketCut cut = proposals_from(rank, {1, 7}, 20).last;
    EXPECT_NEAR(end_on_a_slower_link(cut, 1.2), 0.085 + 1e-3 + 1.2 * 4e-3, 2e-4);
    EXPECT_GT(end_on_a_slower_link({}, 1.2), end_on_a_slower_link(cut, 1.2) + 1e-3)
        << "the best cut for the link as it was would do as well: this shows nothing";
  });
}

TEST(BucketTunerTest, no_more_buckets_are_proposed_than_their_memory_takes) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    MadeUpRank rank(communicator);
    EXPECT_GT(proposals_from(rank, {1, 7}, 5).last.size(), 2u);
    BucketPlan plan = plan_of({1, 7});
    plan.most_buckets = 2;
    rank.tuner().plan_changed();
    for (int backward = 1; backward <= 5; ++backward) rank.backward(plan);

    const auto proposal = rank.tuner().propose(plan, kFloat);

    ASSERT_TRUE(proposal.has_value());
    EXPECT_THAT(proposal->cut, ElementsAre(5, 3));
  });
}

// Another cut ends each of 256 steps 24 ms earlier: time for 6 GB.
TEST(BucketTunerTest, a_cut_has_to_save_what_it_takes_to_move_the_state) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    const auto is_proposed = [&](std::size_t moved_bytes) {
      MadeUpRank rank(communicator);
      const BucketPlan plan = plan_of({1, 7});
      for (int backward = 1; backward <= 5; ++backward) rank.backward(plan);
      return rank.tuner().propose(plan, kFloat, moved_bytes).has_value();
    };

    EXPECT_TRUE(is_proposed(5'000'000'000));
    EXPECT_FALSE(is_proposed(7'000'000'000));
  });
}

TEST(BucketTunerTest, where_all_buckets_are_nearly_of_one_size_another_is_tried) {
  for (const BucketCut& cut : {BucketCut{8}, {4, 4}, {2, 2, 2, 2}}) {
    run_ranks(2, [&](ThreadCommunicator& communicator) {
      MadeUpRank rank(communicator);
      const Proposals found = proposals_from(rank, cut, 300);
      EXPECT_THAT(found.at, ElementsAre(5, 10));
      EXPECT_THAT(found.reasons,
                  ElementsAre(HasSubstr("what a byte takes"), HasSubstr("takes 1.00 ms")));
      EXPECT_EQ(found.last.back(), 1u);
    });
  }
}

TEST(BucketTunerTest, a_link_that_is_no_longer_slow_to_begin_is_noticed) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    MadeUpRank rank(communicator);
    rank.latency_ns = 300 * kMs;
    const BucketCut slow = proposals_from(rank, {1, 7}, 20).last;
    EXPECT_THAT(slow, ElementsAre(8));
    rank.latency_ns = kMs;
    EXPECT_EQ(proposals_from(rank, slow, 600).last.back(), 1u);
  });
}

TEST(BucketTunerTest, times_of_other_buckets_are_forgotten) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    MadeUpRank rank(communicator);
    const BucketPlan before = plan_of({1, 7}), after = plan_of({2, 3, 3});
    for (int i = 0; i < 3; ++i) rank.backward(before);
    rank.tuner().plan_changed();
    for (int i = 0; i < 4; ++i) rank.backward(after);
    EXPECT_FALSE(rank.tuner().propose(after, kFloat).has_value());
    rank.backward(after);
    EXPECT_TRUE(rank.tuner().propose(after, kFloat).has_value());
  });
}

TEST(BucketTunerTest, what_the_backend_does_not_show_is_not_judged) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    BucketTuner tuner(communicator);
    const BucketPlan plan = plan_of({1, 7});
    for (int backward = 0; backward < 10; ++backward) {
      tuner.backward_begins(plan);
      for (std::size_t i = 0; i < kParameters; ++i) tuner.gradient_ready(i);
      tuner.backward_ended({std::nullopt, std::nullopt});
      EXPECT_FALSE(tuner.propose(plan, kFloat).has_value());
    }
  });
}

TEST(BucketTunerTest, only_overlapped_buckets_of_several_nodes_without_a_size_have_one) {
  run_ranks(2, [](ThreadCommunicator& communicator) {
    using parallel::GradientSync;
    EXPECT_EQ(parallel::make_bucket_tuner({}, communicator), nullptr);
    communicator.claim_to_take(std::chrono::seconds(1));
    EXPECT_NE(parallel::make_bucket_tuner({}, communicator), nullptr);
    EXPECT_EQ(parallel::make_bucket_tuner({.bucket_mb = 25}, communicator), nullptr);
    EXPECT_EQ(parallel::make_bucket_tuner({.gradient_sync = GradientSync::kBucketed}, communicator),
              nullptr);
  });
  run_ranks(1, [](ThreadCommunicator& communicator) {
    EXPECT_EQ(parallel::make_bucket_tuner({}, communicator), nullptr);
  });
}

}  // namespace
}  // namespace sidestream::test
