// Inputs of blocks in the host's memory from forward to backward: the same bits, whenever the
// copies are done, and no copy that touches memory of somebody else.
#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string>

#include "comm/cuda/stream_copies.hpp"
#include "core/base/error.hpp"
#include "model/language_model.hpp"
#include "tests/comm/device/fake_driver.hpp"
#include "tests/core/base/late_copies.hpp"
#include "tests/model/poisoned_memory.hpp"

namespace sidestream::model {
namespace {

using core::CopyEngine;
using core::LateCopies;
using test::PoisonedMemory;
using torch::Tensor;
using Tensors = std::vector<Tensor>;
using Queues = std::set<CopyEngine::Queue>;

const std::array<Queues, 4> kPaces = {
    Queues{}, Queues{CopyEngine::Queue::kToDevice}, Queues{CopyEngine::Queue::kToHost},
    Queues{CopyEngine::Queue::kToDevice, CopyEngine::Queue::kToHost}};

struct Variant {
  FusedOps fused = FusedOps::kOn;
  at::ScalarType dtype = at::kFloat;
  double dropout = 0;
};

const std::array<Variant, 4> kVariants = {{{FusedOps::kOn, at::kFloat, 0.0},
                                           {FusedOps::kOn, at::kBFloat16, 0.2},
                                           {FusedOps::kOff, at::kFloat, 0.2},
                                           {FusedOps::kOff, at::kBFloat16, 0.0}}};

std::shared_ptr<LanguageModel> model_of(std::int64_t layers, const Variant& variant,
                                        Recompute level) {
  ModelConfig config = preset("gpt2-micro");
  config.layers = layers;
  config.fused_ops = variant.fused;
  config.dropout = variant.dropout;
  config.recompute = level;
  auto model = make_language_model(config);
  model->initialise(1);
  model->to(variant.dtype);
  return model;
}

Tensor tokens(std::uint64_t seed, std::int64_t rows = 3) {
  torch::manual_seed(seed);
  return torch::randint(512, {rows, 33}, torch::kLong);
}

Tensor loss_of(LanguageModel& model, std::uint64_t seed) {
  const Tensor x = tokens(1), y = tokens(2);
  torch::manual_seed(seed);
  return model.loss(x, y);
}

// Two micro-steps: gradients of the second are added to those of the first.
Tensors losses_of(LanguageModel& model) {
  Tensors losses;
  for (const std::uint64_t seed : {11, 12}) {
    losses.push_back(loss_of(model, seed));
    losses.back().backward();
  }
  return losses;
}

Tensors gradients_of(const LanguageModel& model) {
  Tensors gradients;
  for (const Tensor& parameter : model.parameters()) gradients.push_back(parameter.grad());
  return gradients;
}

void expect_same(const Tensors& found, const Tensors& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_TRUE(found[i].defined()) << i;
    EXPECT_TRUE(torch::equal(found[i], expected[i])) << i;
  }
}

struct ResidualOffloadTest : testing::Test {
  PoisonedMemory memory;
  std::shared_ptr<LateCopies> copies = new_copies();

  std::shared_ptr<LateCopies> new_copies(const Queues& eager = {}) {
    auto made = std::make_shared<LateCopies>();
    made->eager = eager;
    made->may_touch = [this](const void* place, std::size_t) { return memory.has_owner(place); };
    return made;
  }

  std::shared_ptr<LanguageModel> offloaded(std::int64_t layers, const Variant& variant = {}) {
    auto model = model_of(layers, variant, Recompute::kBlocks);
    model->keep_residuals_in(std::make_shared<ResidualStore>(copies));
    return model;
  }

  void expect_quiet() const {
    EXPECT_EQ(copies->waiting(), 0u);
    EXPECT_EQ(copies->fault, "");
  }
};

TEST_F(ResidualOffloadTest, gradients_haveTheSameBitsWithAndWithoutRecomputation) {
  for (const Variant& variant : kVariants) {
    for (const std::int64_t layers : {2, 3, 5}) {
      SCOPED_TRACE(testing::Message() << layers << " layers, dropout " << variant.dropout << " "
                                      << c10::toString(variant.dtype));
      const auto whole = model_of(layers, variant, Recompute::kNone);
      const auto recomputed = model_of(layers, variant, Recompute::kBlocks);
      const Tensors expected = losses_of(*whole);
      expect_same(losses_of(*recomputed), expected);
      for (const Queues& pace : kPaces) {
        copies = new_copies(pace);
        const auto model = offloaded(layers, variant);

        expect_same(losses_of(*model), expected);

        expect_same(gradients_of(*model), gradients_of(*whole));
        expect_same(gradients_of(*model), gradients_of(*recomputed));
        expect_quiet();
      }
    }
  }
}

TEST_F(ResidualOffloadTest, innerBlocks_goOutAndComeBackOnceAMicroStep) {
  const auto model = offloaded(7);

  losses_of(*model);

  EXPECT_EQ(copies->copies_to_host, 2u * 5u);
  EXPECT_EQ(copies->copies_to_device, 2u * 5u);
  EXPECT_EQ(copies->host_blocks_made, 5u) << "the second micro-step uses them again";
  EXPECT_EQ(copies->finishes, 0) << "nothing waits for the device";
}

TEST_F(ResidualOffloadTest, reservedMemory_isWhatAStepUses) {
  const auto model = model_of(7, {}, Recompute::kBlocks);
  const auto store = std::make_shared<ResidualStore>(copies);
  const std::int64_t width = model->config().width;
  store->reserve(static_cast<std::size_t>(offloaded_blocks(model->config())),
                 static_cast<std::size_t>(3 * 33 * width) * sizeof(float));
  model->keep_residuals_in(store);
  EXPECT_EQ(copies->host_blocks_made, 5u);

  losses_of(*model);

  EXPECT_EQ(copies->host_blocks_made, 5u);
}

TEST_F(ResidualOffloadTest, evaluation_offloadsNothing) {
  const auto model = offloaded(5);
  const torch::NoGradGuard no_grad;

  EXPECT_TRUE(torch::equal(loss_of(*model, 1), loss_of(*model_of(5, {}, Recompute::kNone), 1)));

  EXPECT_EQ(copies->copies_to_host, 0u);
}

TEST_F(ResidualOffloadTest, forwardsOneBehindAnother_keepTheirOwn) {
  const auto whole = model_of(5, kVariants[1], Recompute::kNone);
  const auto model = offloaded(5, kVariants[1]);
  for (LanguageModel* one : {whole.get(), model.get()}) {
    const Tensor first = loss_of(*one, 11), second = loss_of(*one, 12);
    first.backward();
    second.backward();
  }

  expect_same(gradients_of(*model), gradients_of(*whole));
  expect_quiet();
}

TEST_F(ResidualOffloadTest, forwardWithoutBackward_leavesNothingBehind) {
  const auto model = offloaded(6);
  { loss_of(*model, 11); }
  expect_quiet();

  const auto whole = model_of(6, {}, Recompute::kNone);
  expect_same(losses_of(*model), losses_of(*whole));
  expect_same(gradients_of(*model), gradients_of(*whole));
}

// Wherever a copy fails, in forward or in backward, those before it are done with before their
// memory has another owner.
TEST_F(ResidualOffloadTest, failures_leaveNoCopyBehind) {
  const auto whole = model_of(6, {}, Recompute::kNone);
  const Tensors expected = losses_of(*whole);
  for (int good = 0; good < 8; ++good) {
    SCOPED_TRACE(good);
    copies = new_copies();
    const auto model = offloaded(6);
    copies->fails_after = good;
    EXPECT_THROW(loss_of(*model, 11).backward(), core::Error);
    expect_quiet();

    copies->fails_after = -1;
    model->zero_grad();
    expect_same(losses_of(*model), expected);
    expect_same(gradients_of(*model), gradients_of(*whole));
    expect_quiet();
  }
}

TEST_F(ResidualOffloadTest, memoryOfTheDevice_doesNotGrowWithTheDepth) {
  constexpr std::int64_t kRows = 64;
  // Beside the loss and the inputs' share: what a forward leaves alive, and the peak of a step.
  struct Use {
    std::int64_t kept, peak;
  };
  const auto use_of = [&](LanguageModel& model) {
    const Tensor x = tokens(1, kRows), y = tokens(2, kRows);
    model.loss(x, y).backward();  // gradients are there from now on
    memory.take_peak();
    const auto before = static_cast<std::int64_t>(memory.bytes_alive());
    const Tensor loss = model.loss(x, y);
    const std::int64_t kept = static_cast<std::int64_t>(memory.bytes_alive()) - before;
    loss.backward();
    return Use{kept, static_cast<std::int64_t>(memory.take_peak()) - before};
  };
  const auto growth_of = [&](bool offloads) {
    std::array<Use, 2> uses{};
    for (const std::int64_t layers : {5, 9}) {
      const auto model = offloads ? offloaded(layers) : model_of(layers, {}, Recompute::kBlocks);
      uses[layers == 9] = use_of(*model);
    }
    return Use{uses[1].kept - uses[0].kept, uses[1].peak - uses[0].peak};
  };
  constexpr std::int64_t kGenerator = 8192;
  const std::int64_t input_bytes = kRows * 33 * preset("gpt2-micro").width * 4;
  ASSERT_GT(input_bytes, 4 * kGenerator)
      << "the state of the generator, once a block, is to be small";

  const Use plain = growth_of(false), moved = growth_of(true);

  EXPECT_GE(plain.kept, 4 * input_bytes);
  EXPECT_GE(plain.peak, 4 * input_bytes - 4 * kGenerator);  // when threads let go of theirs varies
  EXPECT_LT(moved.kept, 4 * kGenerator);
  EXPECT_LT(moved.peak, 4 * kGenerator);
}

// What the order of the copies is on streams.
struct ResidualStreamsTest : testing::Test {
  std::shared_ptr<comm::cuda::FakeDriver> driver = std::make_shared<comm::cuda::FakeDriver>();
  comm::Stream compute = driver->create_stream(comm::cuda::Priority::kNormal);
  std::shared_ptr<CopyEngine> copies = comm::cuda::make_stream_copies(
      driver, [this] { return compute; }, "--offload residuals");
  ResidualStore store{copies};
};

TEST_F(ResidualStreamsTest, copies_runBesideTheComputationAndBehindWhatTheyNeed) {
  const auto pass = store.begin();
  driver->enqueue("block 0", compute);
  const MadeAgain first = pass->keep(torch::ones({8}));
  driver->enqueue("block 1", compute);
  const MadeAgain second = pass->keep(torch::full({8}, 2));
  EXPECT_TRUE(driver->is_after("copy", "block 0"));
  EXPECT_FALSE(driver->is_after("block 1", "copy")) << "they run beside each other";
  const comm::Stream out = driver->stream_of("copy");
  EXPECT_NE(out, compute);

  pass->end_forward();
  driver->enqueue("loss", compute);
  EXPECT_TRUE(driver->is_after("loss", "copy")) << "their memory is free now";

  pass->begin_backward();
  driver->enqueue("last block", compute);
  EXPECT_EQ(driver->count_of("copy"), 3u) << "one comes back meanwhile";
  EXPECT_TRUE(driver->is_after("copy", "loss")) << "its place may have been in use till then";
  EXPECT_FALSE(driver->is_after("last block", "copy"));
  EXPECT_TRUE(torch::equal(second.make(), torch::full({8}, 2)));
  EXPECT_EQ(driver->count_of("copy"), 4u) << "and the one that is wanted next";
  EXPECT_TRUE(torch::equal(first.make(), torch::ones({8})));
  driver->enqueue("backward of block 0", compute);

  EXPECT_TRUE(driver->is_after("backward of block 0", "copy"));
  EXPECT_EQ(driver->count_of("copy"), 4u);
  EXPECT_EQ(driver->synchronizations, 0);
}

TEST_F(ResidualStreamsTest, passWithCopiesOnTheirWay_waitsForThem) {
  {
    const auto pass = store.begin();
    pass->keep(torch::ones({8}));
  }

  EXPECT_EQ(driver->synchronizations, 2) << "of both directions";
  EXPECT_EQ(driver->pinned_alive, 1u) << "for the next forward";
}

TEST(ResidualConfigTest, otherLevelsAndFamilies_areRefused) {
  ModelConfig config = preset("gpt2-micro");
  config.residuals = ResidualPlace::kHost;
  for (const Recompute level :
       {Recompute::kNone, Recompute::kActivations, Recompute::kMlp, Recompute::kAttention}) {
    config.recompute = level;
    EXPECT_THROW(config.validate(), core::ConfigError);
  }
  config.recompute = Recompute::kBlocks;
  EXPECT_NO_THROW(config.validate());
  config.family = "mlp";
  EXPECT_THROW(config.validate(), core::ConfigError);
}

}  // namespace
}  // namespace sidestream::model
