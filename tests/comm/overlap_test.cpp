// Operations that run while the caller does something else, and sums that are the same bit for bit
// however they are cut.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>
#include <random>
#include <thread>

#include "tests/comm/communicator_fixture.hpp"

namespace sidestream::test {
namespace {

using core::DType;

std::vector<float> nasty_floats(int rank, std::size_t count) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::uniform_real_distribution<float> mantissa(-1.0F, 1.0F);
  std::uniform_int_distribution<int> exponent(-30, 30);
  std::vector<float> values(count);
  for (float& value : values) value = std::ldexp(mantissa(random), exponent(random));
  return values;
}

std::vector<float> naive_sum(int ranks, std::size_t count) {
  std::vector<float> sum = nasty_floats(0, count);
  for (int rank = 1; rank < ranks; ++rank) {
    const auto values = nasty_floats(rank, count);
    for (std::size_t i = 0; i < count; ++i) sum[i] = sum[i] + values[i];
  }
  return sum;
}

// As when autograd's thread of a device launches buckets while the training thread waits for it.
TEST(ChangingThreadsTest, operations_keep_their_order) {
  constexpr std::size_t kCount = 1000;
  const auto communicator = make_host_communicator(true);
  auto* data = reinterpret_cast<float*>(communicator->allocate(kCount * sizeof(float)).data);
  const std::vector<float> mine = nasty_floats(communicator->rank(), kCount);
  std::memcpy(data, mine.data(), kCount * sizeof(float));

  std::vector<comm::Work> works;
  for (std::size_t at = 0; at < kCount; at += kCount / 4) {
    std::thread([&] {
      works.push_back(communicator->all_reduce(data + at, kCount / 4, DType::kFloat32));
    }).join();
  }
  for (comm::Work& work : works) work.wait();

  const auto expected = naive_sum(communicator->size(), kCount);
  EXPECT_EQ(std::memcmp(data, expected.data(), kCount * sizeof(float)), 0);
  communicator->barrier();
}

TEST(WorkSpanTest, one_after_the_other_and_known_when_waited_for) {
  constexpr std::size_t kCount = 100'000;
  const auto communicator = make_host_communicator(true);
  auto* data = reinterpret_cast<float*>(communicator->allocate(2 * kCount * sizeof(float)).data);
  comm::Work first = communicator->all_reduce(data, kCount, DType::kFloat32);
  comm::Work second = communicator->all_reduce(data + kCount, kCount, DType::kFloat32);
  EXPECT_FALSE(first.span().has_value());

  first.wait_on(nullptr);
  second.wait_on(nullptr);

  ASSERT_TRUE(first.span().has_value() && second.span().has_value());
  EXPECT_GT(first.span()->begin_ns, 0);
  EXPECT_LT(first.span()->begin_ns, first.span()->end_ns);
  EXPECT_LE(first.span()->end_ns, second.span()->begin_ns);
  EXPECT_LT(second.span()->begin_ns, second.span()->end_ns);
  communicator->barrier();
}

class RankOrderTest : public ::testing::TestWithParam<std::tuple<bool, Memory, std::size_t>> {};

TEST_P(RankOrderTest, all_reduce_equalsNaiveLoopForAnyBuckets) {
  const auto [shared_memory, memory, bucket_count] = GetParam();
  const auto communicator = make_host_communicator(shared_memory);
  const std::size_t count = 1'200'001;
  std::vector<float> foreign = nasty_floats(communicator->rank(), count);
  float* data = foreign.data();
  if (memory == Memory::kAllocated) {
    data = reinterpret_cast<float*>(communicator->allocate(count * sizeof(float)).data);
    std::memcpy(data, foreign.data(), count * sizeof(float));
  }

  std::vector<comm::Work> works;
  for (std::size_t at = 0; at < count; at += bucket_count) {
    works.push_back(
        communicator->all_reduce(data + at, std::min(bucket_count, count - at), DType::kFloat32));
  }
  for (comm::Work& work : works) work.wait();

  const auto expected = naive_sum(communicator->size(), count);
  EXPECT_EQ(std::memcmp(data, expected.data(), count * sizeof(float)), 0);
  communicator->barrier();
}

INSTANTIATE_TEST_SUITE_P(All, RankOrderTest,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::Values(Memory::kAllocated, Memory::kForeign),
                                            ::testing::Values(1'200'001ul, 300'007ul)));

class WaitsAtOnceTest : public ::testing::TestWithParam<bool> {};

// The rank that breaks its promise must not hang the others.
TEST_P(WaitsAtOnceTest, who_does_not_wait_is_late_and_no_worse) {
  const auto communicator = make_host_communicator(GetParam());
  float value = 1.0F;

  comm::Work work = communicator->all_reduce(&value, 1, DType::kFloat32, comm::waited_for());
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!work.done() && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));

  EXPECT_TRUE(work.done());
  work.wait();
  EXPECT_EQ(value, static_cast<float>(communicator->size()));
}

INSTANTIATE_TEST_SUITE_P(All, WaitsAtOnceTest, ::testing::Bool());

class OverlapTest : public ::testing::TestWithParam<bool> {};

// Nobody calls into the communicator between the start and done(): only the progress thread can
// have done it.
TEST_P(OverlapTest, all_reduce_advancesWhileTheCallerDoesNot) {
  const auto communicator = make_host_communicator(GetParam());
  std::vector<float> values(3'000'000, 1.0F);

  comm::Work work = communicator->all_reduce(values.data(), values.size(), DType::kFloat32);
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!work.done() && std::chrono::steady_clock::now() < limit) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  EXPECT_TRUE(work.done());
  work.wait();
  EXPECT_EQ(values.back(), static_cast<float>(communicator->size()));
  EXPECT_GT(communicator->progress_cpu_ns(), 0);
}

TEST_P(OverlapTest, exchange_anyLengthPerRank) {
  const auto communicator = make_host_communicator(GetParam());
  const std::string mine(static_cast<std::size_t>(communicator->rank()) * 1000, 'x');

  const auto all = communicator->exchange(mine);

  ASSERT_EQ(all.size(), static_cast<std::size_t>(communicator->size()));
  for (std::size_t rank = 0; rank < all.size(); ++rank) EXPECT_EQ(all[rank].size(), rank * 1000);
}

TEST_P(OverlapTest, allocate_isAlignedZeroAndSeparatePerRank) {
  const auto communicator = make_host_communicator(GetParam());

  const comm::Allocation first = communicator->allocate(10001);
  const comm::Allocation second = communicator->allocate(4096);
  std::memset(first.data, communicator->rank() + 1, first.bytes);
  communicator->barrier();

  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first.data) % 4096, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second.data) % 4096, 0u);
  for (std::size_t i = 0; i < first.bytes; ++i) {
    ASSERT_EQ(first.data[i], static_cast<std::byte>(communicator->rank() + 1));
  }
  for (std::size_t i = 0; i < second.bytes; ++i) ASSERT_EQ(second.data[i], std::byte{0});
}

TEST_P(OverlapTest, allocate_shared_isOneCopyThatOutlivesTheCommunicator) {
  auto communicator = make_host_communicator(GetParam());
  const auto rank = static_cast<std::size_t>(communicator->rank());
  const auto ranks = static_cast<std::size_t>(communicator->size());
  const bool one_node = communicator->topology().node_count == 1;
  constexpr std::size_t kBytes = 10001;

  const std::shared_ptr<std::byte> shared = communicator->allocate_shared(kBytes);

  ASSERT_EQ(shared != nullptr, GetParam() && one_node);
  if (shared == nullptr) return;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(shared.get()) % 4096, 0u);
  for (std::size_t i = 0; i < kBytes; ++i) ASSERT_EQ(shared.get()[i], std::byte{0});
  communicator->barrier();
  for (std::size_t i = rank; i < kBytes; i += ranks)
    shared.get()[i] = static_cast<std::byte>(rank + 1);
  communicator->barrier();
  communicator.reset();
  for (std::size_t i = 0; i < kBytes; ++i)
    ASSERT_EQ(shared.get()[i], static_cast<std::byte>(i % ranks + 1)) << i;
}

TEST_P(OverlapTest, all_reduce_partOfAnAllocation) {
  const auto communicator = make_host_communicator(GetParam());
  auto* data = reinterpret_cast<float*>(communicator->allocate(4000).data);
  for (int i = 0; i < 1000; ++i) data[i] = 1.0F;

  communicator->all_reduce(data + 101, 55, DType::kFloat32).wait();

  const auto sum = static_cast<float>(communicator->size());
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(data[i], i >= 101 && i < 156 ? sum : 1.0F) << i;
}

INSTANTIATE_TEST_SUITE_P(All, OverlapTest, ::testing::Bool());

}  // namespace
}  // namespace sidestream::test
