// A node with little room in /dev/shm, as in a container: started with a /dev/shm of 48 MiB.
#include <gmock/gmock.h>

#include "comm/shared_window.hpp"
#include "core/base/error.hpp"
#include "tests/comm/communicator_fixture.hpp"

namespace sidestream::test {
namespace {

using core::DType;

TEST(SmallSharedMemoryTest, allocate_fallsBackToPrivateMemoryAndSumsAllTheSame) {
  const auto communicator = make_host_communicator(true);
  const std::size_t count = std::size_t{16} << 20;  // 64 MiB a rank: more than there is

  auto* data = reinterpret_cast<float*>(communicator->allocate(count * sizeof(float)).data);
  for (std::size_t i = 0; i < count; ++i)
    data[i] = static_cast<float>(small_value(i, communicator->rank()));
  communicator->all_reduce(data, count, DType::kFloat32).wait();

  for (const std::size_t i : {std::size_t{0}, count / 2, count - 1}) {
    EXPECT_EQ(data[i], static_cast<float>(small_value(i, 0) + small_value(i, 1)));
  }
}

TEST(SmallSharedMemoryTest, makeCommunicator_goesOnWithoutWindowsAndWarns) {
  const auto hog = make_host_communicator(true);
  ASSERT_EQ(hog->backend_name(), "mpi+shared-memory");
  for (int i = 0; i < 10; ++i)
    hog->allocate(std::size_t{2} << 20);  // in windows until they would not fit
  std::vector<std::string> warnings;

  const auto communicator =
      comm::make_communicator(mpi_environment(), {.backend = comm::Backend::kMpi}, warnings);

  EXPECT_EQ(communicator->backend_name(), "mpi");
  EXPECT_THAT(warnings, ::testing::Contains(::testing::HasSubstr("--shm-size")));
}

TEST(SmallSharedMemoryTest, window_thatDoesNotFitSaysNeedAndHave) {
  const comm::NodeMeeting alone{.exchange = [](std::string_view mine) {
    return std::vector<std::string>{std::string(mine)};
  }};
  try {
    const comm::SharedWindow window(alone, std::size_t{64} << 20);
    FAIL() << "it has got memory";
  } catch (const core::MemoryError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("(65536 KiB wanted, "));
    EXPECT_THAT(error.what(), ::testing::ContainsRegex("wanted, [1-9][0-9]* KiB free on .+\\)"));
  }
}

}  // namespace
}  // namespace sidestream::test
