// The main promises of data-parallel training on real ranks, with the communicator that the trainer
// uses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "comm/factory.hpp"
#include "core/base/error.hpp"
#include "tests/cmake/mpi_test_environment.hpp"
#include "tests/parallel/thread_communicator.hpp"
#include "tests/parallel/toy_training.hpp"

namespace sidestream::test {
namespace {

using parallel::GradientSync;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Matcher;

struct Types {
  core::DType parameters = core::DType::kFloat32;
  core::DType reduce = core::DType::kFloat32;
  core::DType state = core::DType::kFloat32;
};
constexpr Types kWide;
constexpr Types kNarrow{.parameters = core::DType::kBFloat16, .reduce = core::DType::kBFloat16};
constexpr Types kNarrowSums{.reduce = core::DType::kBFloat16};
constexpr Types kNarrowMoments{.state = core::DType::kBFloat16};
constexpr Types kAllNarrow{.parameters = core::DType::kBFloat16,
                           .reduce = core::DType::kBFloat16,
                           .state = core::DType::kBFloat16};

std::unique_ptr<comm::Communicator> make_communicator(const comm::CommunicatorConfig& config = {}) {
  std::vector<std::string> warnings;
  return comm::make_communicator(mpi_environment(), config, warnings);
}

Matcher<std::string> news_of(bool is_cut_anew) {
  if (is_cut_anew) return HasSubstr("buckets: 2 instead of 1");
  return IsEmpty();
}

ToyResult train_on_one_rank() {
  ToyResult result;
  run_ranks(1, [&](ThreadCommunicator& communicator) { result = train_toy(communicator, {}); });
  return result;
}

TEST(MpiTrainingTest, train_onSeveralRanks_equalsOneRankOnTheJoinedBatch) {
  const auto communicator = make_communicator();
  const ToyResult one = train_on_one_rank();
  const auto expect_near = [&](core::DType reduce, double apart) {
    const ToyResult several =
        train_toy(*communicator, {.config = {.bucket_mb = kSmallBuckets, .reduce_dtype = reduce}});
    ASSERT_EQ(one.losses.size(), several.losses.size());
    for (std::size_t i = 0; i < one.losses.size(); ++i) {
      EXPECT_NEAR(one.losses[i], several.losses[i], apart) << "step " << i + 1;
    }
  };

  expect_near(core::DType::kFloat32, 1e-5);
  expect_near(core::DType::kBFloat16, 5e-3);
}

TEST(MpiTrainingTest, train_withOneCopyOfTheState_isBitIdentical) {
  using parallel::OptimizerAlgorithm;
  using parallel::StateSharing;
  const auto communicator = make_communicator();
  for (const OptimizerAlgorithm algorithm :
       {OptimizerAlgorithm::kAdamW, OptimizerAlgorithm::kSgd}) {
    for (const Types& types : {kWide, kNarrow, kNarrowSums, kNarrowMoments, kAllNarrow}) {
      const auto train = [&](StateSharing sharing) {
        return train_toy(
            *communicator,
            {.config = {.parameter_dtype = types.parameters,
                        .reduce_dtype = types.reduce,
                        .state_sharing = sharing,
                        .optimizer = {.algorithm = algorithm, .state_dtype = types.state}}});
      };
      const ToyResult replicated = train(StateSharing::kOff);

      const ToyResult shared = train(StateSharing::kOn);

      EXPECT_EQ(replicated.losses, shared.losses);
      EXPECT_EQ(replicated.norms, shared.norms);
      EXPECT_EQ(replicated.weights, shared.weights);
    }
  }
}

// What one rank writes the others have, wherever the communicator has memory for all of them.
TEST(MpiTrainingTest, construct_onOneNode_keepsOneCopyOfTheState) {
  for (const core::DType dtype : {core::DType::kFloat32, core::DType::kBFloat16}) {
    const auto communicator = make_communicator();
    const bool can_share = communicator->allocate_shared(std::size_t{1} << 20) != nullptr;
    EXPECT_TRUE(communicator->topology().node_count == 1 || !can_share);
    ToyNet net(communicator->rank());

    parallel::DataParallel replicas(
        net, *communicator,
        {.parameter_dtype = dtype, .state_sharing = parallel::StateSharing::kOn});

    EXPECT_EQ(replicas.shares_weights(), can_share);
    const torch::Tensor weights = replicas.states().front().parameter.flatten();
    communicator->barrier();
    if (communicator->rank() == 0) weights[3].fill_(42);
    communicator->barrier();
    if (can_share) {
      EXPECT_EQ(weights[3].item<double>(), 42);
    }
  }
}

// Buckets whose size is chosen here are cut anew between nodes, first in the seventh step.
TEST(MpiTrainingTest, train_withSlicesOfTheState_isBitIdentical) {
  using parallel::StateSharing;
  for (const bool shared_memory : {true, false}) {
    const auto communicator = make_communicator({.shared_memory = shared_memory});
    const bool are_apart = communicator->topology().node_count > 1;
    for (const Types& types : {kWide, kNarrow, kNarrowSums}) {
      const auto train = [&](StateSharing sharing, std::optional<double> bucket_mb) {
        return train_toy(*communicator, {.steps = 9,
                                         .hidden = 6007,
                                         .config = {.bucket_mb = bucket_mb,
                                                    .parameter_dtype = types.parameters,
                                                    .reduce_dtype = types.reduce,
                                                    .state_sharing = sharing}});
      };
      const ToyResult replicated = train(StateSharing::kOff, 0.1);

      for (const std::optional<double> bucket_mb : {std::optional(0.1), std::optional<double>()}) {
        const ToyResult sharded = train(StateSharing::kSharded, bucket_mb);

        EXPECT_EQ(replicated.losses, sharded.losses);
        EXPECT_EQ(replicated.norms, sharded.norms);
        EXPECT_EQ(replicated.weights, sharded.weights);
        const bool is_cut_anew = are_apart && !bucket_mb;
        EXPECT_THAT(sharded.news, news_of(is_cut_anew));
      }
    }
  }
}

TEST(MpiTrainingTest, train_withAnySynchroniser_isBitIdentical) {
  const auto communicator = make_communicator();
  const bool are_apart = communicator->topology().node_count > 1;
  for (const Types& types : {kWide, kNarrow, kNarrowSums}) {
    const auto train = [&](GradientSync kind, std::optional<double> bucket_mb) {
      return train_toy(*communicator, {.config = {.gradient_sync = kind,
                                                  .bucket_mb = bucket_mb,
                                                  .parameter_dtype = types.parameters,
                                                  .reduce_dtype = types.reduce}});
    };
    const ToyResult baseline = train(GradientSync::kPerParameter, {});
    const ToyResult tuned = train(GradientSync::kOverlapped, {});

    EXPECT_THAT(tuned.news, news_of(are_apart));
    for (const ToyResult& other : {tuned, train(GradientSync::kBucketed, {}),
                                   train(GradientSync::kOverlapped, kSmallBuckets)}) {
      EXPECT_EQ(baseline.losses, other.losses);
      EXPECT_EQ(baseline.norms, other.norms);
      EXPECT_EQ(baseline.weights, other.weights);
    }
  }
}

TEST(MpiTrainingTest, checkReplicas_flippedBit_isFoundOnAllRanks) {
  const auto communicator = make_communicator();
  ToyNet net(communicator->rank());
  parallel::DataParallel replicas(net, *communicator,
                                  {.state_sharing = parallel::StateSharing::kOff});
  EXPECT_NO_THROW(replicas.check_replicas());
  if (communicator->rank() == communicator->size() - 1) {
    replicas.states().front().parameter.flatten()[3].add_(1);
  }

  EXPECT_THROW(replicas.check_replicas(), core::NumericsError);
}

}  // namespace
}  // namespace sidestream::test
