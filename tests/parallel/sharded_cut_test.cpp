// Buckets that are cut anew where each rank keeps its slices of the state: no number changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

using parallel::DataParallel;
using parallel::StateSharing;
using ::testing::HasSubstr;

enum class Links {
  kOfOneNode,  // buckets stay as they are
  kSlow,       // collectives take ten seconds whatever their size: one bucket is best
};

struct CutCase {
  int ranks = 2;
  StateSharing sharing = StateSharing::kSharded;
  Links links = Links::kOfOneNode;
  core::DType dtype = core::DType::kFloat32;
  double first_bucket_mb = kSmallBuckets;  // two buckets; 1.0: one
};

struct CutOutcome {
  std::vector<double> losses;  // of the first rank
  std::vector<double> norms;
  std::vector<float> state;
  SavedStates saved;
  std::string news;
};

// Weights arrive while the next step begins. `from`: what to go on from, after so many steps.
CutOutcome train_in_buckets(const CutCase& given, int steps, const SavedStates& from = {}) {
  constexpr std::int64_t kUnits = 6007;  // several blocks of a sum in the large weights
  CutOutcome outcome;
  run_ranks(given.ranks, [&](ThreadCommunicator& communicator) {
    if (given.links == Links::kSlow) communicator.claim_to_take(std::chrono::seconds(10));
    ToyNet net(0, kUnits);
    DataParallel replicas(net, communicator,
                          {.first_bucket_mb = given.first_bucket_mb,
                           .parameter_dtype = given.dtype,
                           .state_sharing = given.sharing});
    if (!from.empty()) restore(replicas, from, steps);
    const auto arrived = replicas.weight_arrival();
    CutOutcome mine;
    for (int step = 0; step < steps; ++step) {
      replicas.begin_micro_step(0);
      for (const torch::Tensor& parameter : net.parameters()) arrived(parameter);
      const torch::Tensor loss =
          toy_loss(net, make_toy_batch(8 * (step * communicator.size() + communicator.rank()), 8));
      loss.backward();
      replicas.finish_backward();
      mine.losses.push_back(loss.item<double>());
      mine.norms.push_back(replicas.update(1e-2).grad_norm);
      mine.news += replicas.take_news();
    }
    replicas.check_replicas();
    mine.state = state_of(replicas);
    mine.saved = saved(replicas);
    if (communicator.rank() == 0) outcome = std::move(mine);
  });
  return outcome;
}

void expect_same_numbers(const CutOutcome& one, const CutOutcome& other) {
  EXPECT_EQ(one.losses, other.losses);
  EXPECT_EQ(one.norms, other.norms);
  EXPECT_EQ(one.state, other.state);
}

TEST(ShardedCutTest, train_inBucketsThatAreCutAnew_isBitIdentical) {
  struct Begin {
    double first_bucket_mb;
    const char* news;
  };
  constexpr int kSteps = 14;  // twice the time to measure what buckets take
  for (const int ranks : {2, 3}) {
    for (const core::DType dtype : {core::DType::kFloat32, core::DType::kBFloat16}) {
      const CutOutcome whole =
          train_in_buckets({.ranks = ranks, .sharing = StateSharing::kOff, .dtype = dtype}, kSteps);
      for (const Begin begin : {Begin{kSmallBuckets, "buckets: 1 instead of 2"},
                                Begin{1.0, "buckets: 2 instead of 1"}}) {
        const CutOutcome cut_anew = train_in_buckets({.ranks = ranks,
                                                      .links = Links::kSlow,
                                                      .dtype = dtype,
                                                      .first_bucket_mb = begin.first_bucket_mb},
                                                     kSteps);

        EXPECT_THAT(cut_anew.news, HasSubstr(begin.news)) << ranks << " ranks";
        expect_same_numbers(whole, cut_anew);
      }
    }
  }
}

TEST(ShardedCutTest, saved_afterACut_isWhatItWouldBeWithoutAndGoesOnInOtherCutsAndRanks) {
  constexpr int kSteps = 8;
  const CutOutcome stays = train_in_buckets({}, kSteps);
  EXPECT_EQ(stays.news, "");

  const CutOutcome cut_anew = train_in_buckets({.links = Links::kSlow}, kSteps);

  EXPECT_THAT(cut_anew.news, HasSubstr("buckets: 1 instead of 2"));
  EXPECT_TRUE(std::equal(stays.saved.begin(), stays.saved.end(), cut_anew.saved.begin(),
                         cut_anew.saved.end(), [](const auto& one, const auto& other) {
                           return one.first == other.first &&
                                  torch::equal(one.second, other.second);
                         }));
  for (const int ranks : {1, 2, 3}) {
    const CutOutcome whole =
        train_in_buckets({.ranks = ranks, .sharing = StateSharing::kOff}, kSteps, stays.saved);
    for (const double first_bucket_mb : {kSmallBuckets, 1.0}) {
      expect_same_numbers(
          whole, train_in_buckets(
                     {.ranks = ranks, .links = Links::kSlow, .first_bucket_mb = first_bucket_mb},
                     kSteps, cut_anew.saved));
    }
  }
}

}  // namespace
}  // namespace sidestream::test
