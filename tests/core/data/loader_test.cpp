#include "core/data/loader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "core/base/error.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/core/data/shard_fixture.hpp"

namespace sidestream::data {
namespace {

using core::ScratchFolder;
using ::testing::HasSubstr;
using Rows = std::vector<std::vector<std::int64_t>>;

constexpr std::uint64_t kLength = 4;

class LoaderTest : public ::testing::Test {
 protected:
  LoaderTest() {
    testing::write_bytes(folder_.path() / "train_0.bin",
                         testing::llm_c_bytes(testing::counting(0, 150)));
    testing::write_bytes(folder_.path() / "train_1.bin",
                         testing::llm_c_bytes(testing::counting(150, 100)));
    source_ = open_source(folder_.path(), Split::kTrain);
  }

  ScratchFolder folder_;
  std::shared_ptr<const SampleSource> source_;
};

void append_rows(Rows& rows, const Batch& batch) {
  for (std::size_t i = 0; i < batch.inputs().size(); i += kLength) {
    std::vector<std::int64_t> row(
        batch.inputs().begin() + static_cast<std::ptrdiff_t>(i),
        batch.inputs().begin() + static_cast<std::ptrdiff_t>(i + kLength));
    row.push_back(batch.targets()[i + kLength - 1]);
    for (std::size_t t = 0; t + 1 < kLength; ++t) EXPECT_EQ(batch.targets()[i + t], row[t + 1]);
    rows.push_back(row);
  }
}

Rows rows_of(const LoaderConfig& config, const std::shared_ptr<const SampleSource>& source,
             int batches) {
  Loader loader(config, source);
  Rows rows;
  for (int i = 0; i < batches; ++i) append_rows(rows, loader.next());
  return rows;
}

TEST_F(LoaderTest, next_windowsOfTheStream) {
  const LoaderConfig config{.batch_size = 2, .sequence_length = kLength, .shuffle = Shuffle::kOff};

  const Rows rows = rows_of(config, source_, 40);

  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto first = static_cast<std::int64_t>(i % 62 * kLength);  // n = (250 - 1) / 4
    EXPECT_THAT(rows[i], ::testing::ElementsAre(first, first + 1, first + 2, first + 3, first + 4));
  }
}

TEST_F(LoaderTest, next_sameForAnyWorkersAndPrefetch) {
  LoaderConfig config{
      .batch_size = 3, .sequence_length = kLength, .grad_accumulation = 2, .seed = 9, .workers = 0};
  const Rows expected = rows_of(config, source_, 60);

  for (const int workers : {0, 1, 2, 5}) {
    for (const int prefetch : {1, 2, 7}) {
      config.workers = workers;
      config.prefetch = prefetch;
      EXPECT_EQ(rows_of(config, source_, 60), expected)
          << workers << " workers, prefetch " << prefetch;
    }
  }
}

TEST_F(LoaderTest, next_ranksJoinedEqualOneRank) {
  constexpr std::uint64_t kJoined = 12;
  const Rows expected =
      rows_of({.batch_size = kJoined, .sequence_length = kLength, .seed = 4}, source_, 10);

  for (const std::uint64_t ranks : {2, 3, 4}) {
    std::vector<std::unique_ptr<Loader>> loaders;
    for (std::uint64_t rank = 0; rank < ranks; ++rank) {
      loaders.push_back(std::make_unique<Loader>(LoaderConfig{.batch_size = kJoined / ranks,
                                                              .sequence_length = kLength,
                                                              .rank = rank,
                                                              .world_size = ranks,
                                                              .seed = 4},
                                                 source_));
    }
    Rows rows;
    for (int step = 0; step < 10; ++step) {
      for (const auto& loader : loaders) append_rows(rows, loader->next());
    }
    EXPECT_EQ(rows, expected) << ranks << " ranks";
  }
}

TEST_F(LoaderTest, next_accumulationEqualsTheJoinedBatch) {
  const Rows joined =
      rows_of({.batch_size = 12, .sequence_length = kLength, .seed = 4}, source_, 10);

  const Rows parts =
      rows_of({.batch_size = 4, .sequence_length = kLength, .grad_accumulation = 3, .seed = 4},
              source_, 30);

  EXPECT_EQ(parts, joined);
}

TEST_F(LoaderTest, next_resumeEqualsSkipping) {
  LoaderConfig config{
      .batch_size = 3, .sequence_length = kLength, .grad_accumulation = 2, .seed = 5, .workers = 2};
  const Rows all = rows_of(config, source_, 2 * 40);
  config.first_step = 31;

  const Rows resumed = rows_of(config, source_, 2 * 10);

  EXPECT_EQ(resumed, Rows(all.begin() + 30 * 2 * 3, all.end()));
}

// Another world size or batch takes over in the middle: it goes on with the sample that comes next.
TEST_F(LoaderTest, next_firstSampleGoesOnWithAnotherBatch) {
  const LoaderConfig before{.batch_size = 6, .sequence_length = kLength, .seed = 5};
  const Rows all = rows_of(before, source_, 30);  // three epochs

  for (const std::uint64_t taken : {6u, 30u, 90u}) {
    Rows resumed;
    std::vector<std::unique_ptr<Loader>> ranks;
    for (std::uint64_t rank = 0; rank < 2; ++rank) {
      ranks.push_back(std::make_unique<Loader>(LoaderConfig{.batch_size = 2,
                                                            .sequence_length = kLength,
                                                            .rank = rank,
                                                            .world_size = 2,
                                                            .seed = 5,
                                                            .first_sample = taken},
                                               source_));
    }
    for (int step = 0; step < 10; ++step) {
      for (const auto& loader : ranks) append_rows(resumed, loader->next());
    }

    const auto first = all.begin() + static_cast<std::ptrdiff_t>(taken);
    EXPECT_EQ(resumed, Rows(first, first + 40)) << "after " << taken << " samples";
  }
}

TEST_F(LoaderTest, next_firstSampleCountsTheEpoch) {
  Loader loader(
      {.batch_size = 1, .sequence_length = kLength, .first_sample = 2 * source_->count(kLength)},
      source_);

  EXPECT_EQ(loader.next().epoch(), 2u);
}

TEST_F(LoaderTest, next_epochCoversEverySampleOnce) {
  Loader loader({.batch_size = 2, .sequence_length = kLength, .seed = 3}, source_);
  std::set<std::int64_t> firsts;

  for (int i = 0; i < 31; ++i) {
    const Batch batch = loader.next();
    EXPECT_EQ(batch.epoch(), 0u);
    for (std::size_t row = 0; row < 2; ++row) firsts.insert(batch.inputs()[row * kLength]);
  }

  EXPECT_EQ(loader.samples(), 62u);
  EXPECT_EQ(firsts.size(), 62u);
  EXPECT_EQ(loader.next().epoch(), 1u);
}

TEST_F(LoaderTest, next_placeOfTheBatch) {
  Loader loader(
      {.batch_size = 1, .sequence_length = kLength, .grad_accumulation = 2, .first_step = 5},
      source_);

  for (const auto& [step, micro_step] : {std::pair{5u, 0u}, {5u, 1u}, {6u, 0u}}) {
    const Batch batch = loader.next();
    EXPECT_EQ(batch.step(), step);
    EXPECT_EQ(batch.micro_step(), micro_step);
  }
}

TEST_F(LoaderTest, next_fixBatchRepeatsTheFirst) {
  LoaderConfig config{
      .batch_size = 3, .sequence_length = kLength, .grad_accumulation = 2, .seed = 5};
  const Rows first = rows_of(config, source_, 1);
  config.fix_batch = FixBatch::kOn;
  config.first_step = 7;

  for (const int workers : {0, 2}) {
    config.workers = workers;
    const Rows rows = rows_of(config, source_, 20);
    for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], first[i % 3]);
  }
}

TEST_F(LoaderTest, next_alignedSlotsThatStayValidUntilReleased) {
  Loader loader(
      {.batch_size = 3, .sequence_length = kLength, .workers = 2, .prefetch = 1, .max_held = 2},
      source_);
  Batch first = loader.next();
  const std::vector<std::int64_t> copy(first.inputs().begin(), first.inputs().end());

  for (int i = 0; i < 2; ++i) {
    const Batch other = loader.next();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(other.inputs().data()) % 64, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(other.targets().data()) % 64, 0u);
  }

  EXPECT_TRUE(std::equal(copy.begin(), copy.end(), first.inputs().begin()));
  EXPECT_THROW(loader.next(), core::Error);  // its slot is the one that `first` holds
  first.release();
  EXPECT_TRUE(first.inputs().empty());
  EXPECT_EQ(loader.next().step(), 4u);
}

TEST_F(LoaderTest, batch_movedFromIsEmpty) {
  Loader loader({.batch_size = 1, .sequence_length = kLength}, source_);
  Batch from = loader.next();

  const Batch to = std::move(from);

  EXPECT_TRUE(from.inputs().empty());
  EXPECT_EQ(to.inputs().size(), kLength);
}

TEST_F(LoaderTest, batch_outlivesTheLoader) {
  auto loader = std::make_unique<Loader>(
      LoaderConfig{.batch_size = 1, .sequence_length = kLength, .shuffle = Shuffle::kOff}, source_);
  const Batch batch = loader->next();

  loader.reset();

  EXPECT_THAT(batch.inputs(), ::testing::ElementsAre(0, 1, 2, 3));
}

TEST_F(LoaderTest, constructor_lessThanOneBatch) {
  try {
    Loader({.batch_size = 8, .sequence_length = kLength, .world_size = 8}, source_);
    FAIL();
  } catch (const core::DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("takes 64 samples of 4 tokens, the data has 62"));
  }
}

TEST_F(LoaderTest, constructor_badConfiguration) {
  EXPECT_THROW(Loader({.batch_size = 0, .sequence_length = 4}, source_), core::ConfigError);
  EXPECT_THROW(Loader({.sequence_length = 0}, source_), core::ConfigError);
  EXPECT_THROW(Loader({.sequence_length = 4, .rank = 1}, source_), core::ConfigError);
  EXPECT_THROW(Loader({.sequence_length = 4, .first_step = 0}, source_), core::ConfigError);
  EXPECT_THROW(Loader({.sequence_length = 4, .workers = -1}, source_), core::ConfigError);
  EXPECT_THROW(Loader({.sequence_length = 4, .prefetch = 0}, source_), core::ConfigError);
}

TEST_F(LoaderTest, allocator_usedForEverySlotAndGivenBack) {
  std::size_t allocated = 0;
  std::size_t released = 0;
  LoaderConfig config{.batch_size = 3, .sequence_length = kLength, .prefetch = 3, .max_held = 2};
  const auto heap = SlotAllocator::heap();
  config.allocator.allocate = [&](std::size_t bytes) {
    return allocated = bytes, heap.allocate(bytes);
  };
  config.allocator.release = [&](void* memory, std::size_t bytes) {
    released = bytes, heap.release(memory, bytes);
  };

  rows_of(config, source_, 5);

  EXPECT_EQ(allocated, 5u * 2 * 128);  // 96 bytes each for inputs and targets, rounded up
  EXPECT_EQ(config.memory_bytes(), allocated);
  EXPECT_EQ(released, allocated);
}

TEST_F(LoaderTest, allocator_failing) {
  LoaderConfig config{.sequence_length = kLength};
  config.allocator = {.allocate = [](std::size_t) -> void* { return nullptr; },
                      .release = [](void*, std::size_t) {}};

  EXPECT_THROW(Loader(config, source_), core::MemoryError);
}

TEST_F(LoaderTest, next_shardThatWasCutBetweenTwoBatchesIsAnError) {
  Loader loader(
      {.batch_size = 2, .sequence_length = kLength, .shuffle = Shuffle::kOff, .workers = 0},
      source_);
  loader.next();

  std::filesystem::resize_file(folder_.path() / "train_0.bin", 1030);

  try {
    loader.next();
    FAIL() << "a file that ends at byte 1030 gave a batch";
  } catch (const core::DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr("train_0.bin, byte 1030"));
  }
}

class FailingSource final : public SampleSource {
 public:
  std::uint64_t count(std::uint64_t) const override { return 100; }
  void read(std::uint64_t sample, std::span<std::int64_t>, std::span<std::int64_t>) const override {
    if (sample == 3) throw core::DataError("sample 3 is rotten");
  }
};

TEST(LoaderErrorTest, next_workersExceptionSurfaces) {
  for (const int workers : {0, 1, 3}) {
    Loader loader({.sequence_length = 1, .shuffle = Shuffle::kOff, .workers = workers},
                  std::make_shared<FailingSource>());
    for (int i = 0; i < 3; ++i) loader.next();

    EXPECT_THROW(loader.next(), core::DataError) << workers;
    EXPECT_THROW(loader.next(), core::DataError) << workers;
  }
}

TEST(LoaderErrorTest, next_exceptionOfTheStartHookSurfaces) {
  Loader loader({.sequence_length = 1,
                 .workers = 1,
                 .on_worker_start = [](int) { throw core::Error("cannot pin"); }},
                std::make_shared<FailingSource>());

  EXPECT_THROW(loader.next(), core::Error);
}

TEST(LoaderThreadTest, workers_haveNames) {
  std::mutex mutex;
  std::set<std::string> names;
  LoaderConfig config{.sequence_length = 1, .workers = 2};
  config.on_worker_start = [&](int) {
    std::array<char, 16> name{};
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
    const std::lock_guard lock(mutex);
    names.insert(name.data());
  };
  { Loader loader(config, std::make_shared<SyntheticSource>(10, 1)); }

  EXPECT_THAT(names, ::testing::ElementsAre("ss-loader-0", "ss-loader-1"));
}

class SlowSource final : public SampleSource {
 public:
  std::uint64_t count(std::uint64_t) const override { return 100; }
  void read(std::uint64_t, std::span<std::int64_t>, std::span<std::int64_t>) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
};

TEST(LoaderCostTest, readerCost_timeThatNextBlocked) {
  Loader synchronous({.sequence_length = 1, .workers = 0}, std::make_shared<SlowSource>());
  synchronous.next();
  synchronous.next();
  EXPECT_GE(synchronous.last_reader_cost_ns(), 20'000'000u);
  EXPECT_GE(synchronous.reader_cost_ns(), 40'000'000u);

  Loader ahead({.sequence_length = 1, .workers = 1}, std::make_shared<SlowSource>());
  ahead.next();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ahead.next();
  EXPECT_LT(ahead.last_reader_cost_ns(), 15'000'000u);
}

TEST(SyntheticSourceTest, read_pureFunctionInsideTheVocabulary) {
  const SyntheticSource source(50, 7);
  const SyntheticSource same(50, 7);
  const SyntheticSource other(50, 8);
  std::vector<std::int64_t> inputs(1000), targets(1000), again(1000), different(1000), unused(1000);

  source.read(12, inputs, targets);
  same.read(12, again, unused);
  other.read(12, different, unused);

  EXPECT_EQ(inputs, again);
  EXPECT_NE(inputs, different);
  EXPECT_TRUE(std::equal(targets.begin(), targets.end() - 1, inputs.begin() + 1));
  EXPECT_EQ(*std::min_element(inputs.begin(), inputs.end()), 0);
  EXPECT_EQ(*std::max_element(inputs.begin(), inputs.end()), 49);
}

TEST(SyntheticSourceTest, constructor_badVocabulary) {
  EXPECT_THROW(SyntheticSource(0, 1), core::ConfigError);
  EXPECT_THROW(SyntheticSource((std::uint64_t{1} << 32) + 1, 1), core::ConfigError);
}

}  // namespace
}  // namespace sidestream::data
