// Every NCCL collective in every element type, with host MPI over the same numbers as the oracle.
// Needs a GPU; the ranks share it.
#include <gtest/gtest.h>

#include "comm/cuda/handles.hpp"
#include "tests/comm/communicator_fixture.hpp"

namespace sidestream::test {
namespace {

using comm::Communicator;
using core::DType;

class NcclOracleTest : public ::testing::TestWithParam<std::tuple<DType, std::size_t>> {
 protected:
  static void SetUpTestSuite() {
    driver_ = comm::cuda::make_driver();
    host_ = make_host_communicator(true);
    comm::CommunicatorConfig config{.backend = comm::Backend::kNccl,
                                    .device = comm::DeviceWish::kCuda,
                                    .gpu_sharing = comm::GpuSharing::kAllowed,
                                    .timeout_setup = std::chrono::seconds(60),
                                    .timeout_collective = std::chrono::seconds(60)};
    comm::choose_device(config);
    std::vector<std::string> warnings;
    gpu_ = comm::make_communicator(mpi_environment(), config, warnings);
    stream_ = std::make_unique<comm::cuda::OwnedStream>(driver_, comm::cuda::Priority::kNormal);
    memory_ = gpu_->allocate(std::size_t{64} << 20);
  }
  static void TearDownTestSuite() {
    stream_.reset();
    gpu_.reset();
    host_.reset();
  }

  DType dtype() const { return std::get<0>(GetParam()); }
  std::size_t count() const { return std::get<1>(GetParam()); }
  std::size_t bytes(std::size_t elements) const { return elements * core::size_of(dtype()); }
  std::size_t ranks() const { return static_cast<std::size_t>(host_->size()); }

  std::vector<std::byte> values(std::size_t elements) const {
    std::vector<std::byte> data(bytes(elements));
    for (std::size_t i = 0; i < elements; ++i) {
      store(data.data(), i, dtype(), small_value(i, host_->rank()));
    }
    return data;
  }

  // For types that are carried and not added.
  std::vector<std::byte> any_bytes(std::size_t elements) const {
    std::vector<std::byte> data(bytes(elements));
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<std::byte>(7 * i + 31 * static_cast<std::size_t>(host_->rank()));
    return data;
  }

  void check_all_gather(const std::vector<std::byte>& input) const {
    std::vector<std::byte> expected(bytes(count() * ranks()));
    const auto found = on_device(input, expected.size(), [&](auto* from, auto* to, auto options) {
      return gpu_->all_gather(from, to, count(), dtype(), options);
    });
    host_->all_gather(input.data(), expected.data(), count(), dtype()).wait();
    EXPECT_EQ(found, expected);
  }

  void check_broadcast(std::vector<std::byte> expected) const {
    const int root = host_->size() - 1;
    const auto found =
        on_device(expected, expected.size(), [&](auto* from, auto* to, auto options) {
          driver_->copy(to, from, bytes(count()), options.after);
          return gpu_->broadcast(to, count(), dtype(), root, options);
        });
    host_->broadcast(expected.data(), count(), dtype(), root).wait();
    EXPECT_EQ(found, expected);
  }

  // Runs `collective` on the device, between a copy there and a copy back on one stream.
  template <typename Collective>
  std::vector<std::byte> on_device(const std::vector<std::byte>& input, std::size_t output_bytes,
                                   const Collective& collective) const {
    std::byte* from = memory_.data;
    std::byte* to = memory_.data + (std::size_t{32} << 20);
    driver_->copy(from, input.data(), input.size(), stream_->get());
    collective(from, to, comm::CollectiveOptions{.after = stream_->get()}).wait_on(stream_->get());
    std::vector<std::byte> output(output_bytes);
    driver_->copy(output.data(), to, output_bytes, stream_->get());
    driver_->synchronize(stream_->get());
    return output;
  }

  static inline std::shared_ptr<comm::cuda::Driver> driver_;
  static inline std::unique_ptr<Communicator> host_, gpu_;
  static inline std::unique_ptr<comm::cuda::OwnedStream> stream_;
  static inline comm::Allocation memory_;
};

TEST_P(NcclOracleTest, all_reduce_equals_host) {
  auto expected = values(count());

  const auto found = on_device(expected, expected.size(), [&](auto* from, auto* to, auto options) {
    driver_->copy(to, from, bytes(count()), options.after);
    return gpu_->all_reduce(to, count(), dtype(), options);
  });
  host_->all_reduce(expected.data(), count(), dtype()).wait();

  EXPECT_EQ(found, expected);
}

TEST_P(NcclOracleTest, reduce_scatter_equals_host) {
  const auto input = values(count() * ranks());
  std::vector<std::byte> expected(bytes(count()));

  const auto found = on_device(input, expected.size(), [&](auto* from, auto* to, auto options) {
    return gpu_->reduce_scatter(from, to, count(), dtype(), options);
  });
  host_->reduce_scatter(input.data(), expected.data(), count(), dtype()).wait();

  EXPECT_EQ(found, expected);
}

TEST_P(NcclOracleTest, all_gather_equals_host) { check_all_gather(values(count())); }

TEST_P(NcclOracleTest, broadcast_from_the_last_rank_equals_host) {
  check_broadcast(values(count()));
}

TEST_P(NcclOracleTest, overlapping_collectives_keep_their_order) {
  std::vector<std::byte> expected = values(count());
  const auto found = on_device(expected, expected.size(), [&](auto* from, auto* to, auto options) {
    driver_->copy(to, from, bytes(count()), options.after);
    comm::Work first = gpu_->all_reduce(to, count(), dtype(), options);
    comm::Work second = gpu_->broadcast(to, count(), dtype(), 0, {});
    first.wait_on(options.after);
    return second;
  });
  host_->all_reduce(expected.data(), count(), dtype()).wait();

  EXPECT_EQ(found, expected);
}

INSTANTIATE_TEST_SUITE_P(TypesAndSizes, NcclOracleTest,
                         ::testing::Combine(::testing::Values(DType::kFloat32, DType::kBFloat16,
                                                              DType::kFloat16, DType::kInt64),
                                            ::testing::Values(std::size_t{1}, std::size_t{1000},
                                                              std::size_t{1} << 20)));

class NcclCarriedTest : public NcclOracleTest {};

TEST_P(NcclCarriedTest, all_gather_equals_host) { check_all_gather(any_bytes(count())); }

TEST_P(NcclCarriedTest, broadcast_from_the_last_rank_equals_host) {
  check_broadcast(any_bytes(count()));
}

INSTANTIATE_TEST_SUITE_P(TypesAndSizes, NcclCarriedTest,
                         ::testing::Combine(::testing::Values(DType::kUInt8, DType::kUInt16,
                                                              DType::kInt32, DType::kFloat64),
                                            ::testing::Values(std::size_t{1}, std::size_t{1001})));

}  // namespace
}  // namespace sidestream::test
