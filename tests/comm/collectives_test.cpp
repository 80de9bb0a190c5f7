// Every collective in every element type, size and kind of memory, with plain MPI as the oracle.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <tuple>

#include "tests/comm/communicator_fixture.hpp"

namespace sidestream::test {
namespace {

using comm::Communicator;
using core::DType;

enum class Path { kSharedMemory, kPlainMpi };

struct Buffer {
  std::vector<std::byte> storage;
  std::byte* data = nullptr;
};

using Case = std::tuple<Path, Memory, DType>;

class CollectivesTest : public ::testing::TestWithParam<Case> {
 protected:
  // One communicator a path for all tests: making one takes longer than a test.
  struct Stage {
    std::unique_ptr<Communicator> communicator;
    comm::Allocation arena;
  };

  static void SetUpTestSuite() {
    for (const Path path : {Path::kSharedMemory, Path::kPlainMpi}) {
      auto communicator = make_host_communicator(path == Path::kSharedMemory);
      const auto shares = static_cast<std::size_t>(std::max(4, communicator->size()));
      const comm::Allocation arena = communicator->allocate(shares * (std::size_t{6} << 20));
      stages_.push_back({std::move(communicator), arena});
    }
  }
  static void TearDownTestSuite() { stages_.clear(); }

  void SetUp() override {
    const Stage& stage = stages_.at(std::get<0>(GetParam()) == Path::kSharedMemory ? 0 : 1);
    communicator_ = stage.communicator.get();
    arena_ = stage.arena;
  }

  DType dtype() const { return std::get<2>(GetParam()); }

  Buffer make_buffer(std::size_t count) {
    Buffer buffer;
    if (std::get<1>(GetParam()) == Memory::kAllocated) {
      buffer.data = arena_.data + used_;
      used_ += (count * 8 + 63) / 64 * 64;
      EXPECT_LE(used_, arena_.bytes);
    } else {
      buffer.storage.resize(count * 8 + 8);
      buffer.data = buffer.storage.data();
    }
    return buffer;
  }

  void fill(std::byte* data, std::size_t count, std::size_t first_index = 0) const {
    for (std::size_t i = 0; i < count; ++i) {
      store(data, i, dtype(), small_value(first_index + i, communicator_->rank()));
    }
  }

  // The oracle: MPI's own sum of the same small integers.
  std::vector<double> mpi_sums(std::size_t count) const {
    std::vector<double> sums(count);
    for (std::size_t i = 0; i < count; ++i) sums[i] = small_value(i, communicator_->rank());
    MPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(count), MPI_DOUBLE, MPI_SUM,
                  MPI_COMM_WORLD);
    return sums;
  }

  // One message for the first wrong element, not one for each.
  void expect_values(const std::byte* data, const std::vector<double>& expected) const {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(load(data, i, dtype()), expected[i])
          << "element " << i << " of " << expected.size();
    }
  }

  static inline std::vector<Stage> stages_;
  Communicator* communicator_ = nullptr;
  comm::Allocation arena_;
  std::size_t used_ = 0;
};

TEST_P(CollectivesTest, all_reduce_equalsMpi) {
  // The last is larger than a bounce buffer of 4 MiB and than two chunks of the message path for
  // any element type.
  for (const std::size_t count : {0ul, 1ul, 2ul, 3ul, 5ul, 1000ul, 65537ul, 2100001ul}) {
    used_ = 0;
    const Buffer buffer = make_buffer(count);
    fill(buffer.data, count);

    communicator_->all_reduce(buffer.data, count, dtype()).wait();

    expect_values(buffer.data, mpi_sums(count));
    communicator_->barrier();
  }
}

TEST_P(CollectivesTest, reduce_scatter_equalsMpi) {
  const auto ranks = static_cast<std::size_t>(communicator_->size());
  for (const std::size_t count : {0ul, 1ul, 7ul, 300001ul}) {
    used_ = 0;
    const Buffer input = make_buffer(count * ranks);
    const Buffer output = make_buffer(count);
    fill(input.data, count * ranks);

    communicator_->reduce_scatter(input.data, output.data, count, dtype()).wait();

    const auto sums = mpi_sums(count * ranks);
    const auto begin = sums.begin() + static_cast<std::ptrdiff_t>(count) * communicator_->rank();
    expect_values(output.data, {begin, begin + static_cast<std::ptrdiff_t>(count)});
    communicator_->barrier();
  }
}

TEST_P(CollectivesTest, reduce_scatter_intoOwnSlice) {
  const std::size_t count = 1001;
  const auto ranks = static_cast<std::size_t>(communicator_->size());
  const auto rank = static_cast<std::size_t>(communicator_->rank());
  const Buffer buffer = make_buffer(count * ranks);
  fill(buffer.data, count * ranks);
  std::byte* own = buffer.data + rank * count * core::size_of(dtype());

  communicator_->reduce_scatter(buffer.data, own, count, dtype()).wait();

  const auto sums = mpi_sums(count * ranks);
  const auto begin = sums.begin() + static_cast<std::ptrdiff_t>(count * rank);
  expect_values(own, {begin, begin + static_cast<std::ptrdiff_t>(count)});
}

TEST_P(CollectivesTest, all_gather_bringsEverySlice) {
  const auto ranks = static_cast<std::size_t>(communicator_->size());
  for (const std::size_t count : {0ul, 1ul, 7ul, 600001ul}) {
    used_ = 0;
    const Buffer output = make_buffer(count * ranks);
    std::byte* own = output.data + static_cast<std::size_t>(communicator_->rank()) * count *
                                       core::size_of(dtype());
    fill(own, count);

    communicator_->all_gather(own, output.data, count, dtype()).wait();

    std::vector<double> expected;
    for (int rank = 0; rank < communicator_->size(); ++rank) {
      for (std::size_t i = 0; i < count; ++i) expected.push_back(small_value(i, rank));
    }
    expect_values(output.data, expected);
    communicator_->barrier();
  }
}

TEST_P(CollectivesTest, broadcast_bringsTheRootsValues) {
  for (const std::size_t count : {0ul, 1ul, 700001ul}) {
    for (int root = 0; root < communicator_->size(); ++root) {
      used_ = 0;
      const Buffer buffer = make_buffer(count);
      fill(buffer.data, count);

      communicator_->broadcast(buffer.data, count, dtype(), root).wait();

      std::vector<double> expected;
      for (std::size_t i = 0; i < count; ++i) expected.push_back(small_value(i, root));
      expect_values(buffer.data, expected);
    }
  }
}

TEST_P(CollectivesTest, all_reduce_severalInFlight) {
  constexpr std::size_t kOperations = 12;
  const std::size_t count = 20011;
  std::vector<Buffer> buffers;
  std::vector<comm::Work> works;
  for (std::size_t i = 0; i < kOperations; ++i) {
    buffers.push_back(make_buffer(count));
    fill(buffers.back().data, count);
  }

  for (std::size_t i = 0; i < kOperations; ++i) {
    works.push_back(communicator_->all_reduce(buffers[i].data, count - i, dtype(),
                                              {.bucket = static_cast<int>(i)}));
  }
  for (std::size_t i = kOperations; i-- > 0;) works[i].wait();

  for (std::size_t i = 0; i < kOperations; ++i) expect_values(buffers[i].data, mpi_sums(count - i));
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return std::string(std::get<0>(info.param) == Path::kSharedMemory ? "sharedMemory" : "plainMpi") +
         (std::get<1>(info.param) == Memory::kAllocated ? "_allocated_" : "_foreign_") +
         std::string(core::name_of(std::get<2>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(All, CollectivesTest,
                         ::testing::Combine(::testing::Values(Path::kSharedMemory, Path::kPlainMpi),
                                            ::testing::Values(Memory::kAllocated, Memory::kForeign),
                                            ::testing::Values(DType::kFloat32, DType::kBFloat16,
                                                              DType::kFloat16, DType::kInt64)),
                         case_name);

}  // namespace
}  // namespace sidestream::test
