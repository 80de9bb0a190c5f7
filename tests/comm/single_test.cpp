// What needs no MPI: the communicator of one process, the factory's refusals, Work, steps,
// deadlines, binding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <thread>

#include "comm/deadline.hpp"
#include "comm/factory.hpp"
#include "comm/job_setup.hpp"
#include "comm/steps.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm {
namespace {

using core::DType;
using ::testing::HasSubstr;

class SingleCommunicatorTest : public ::testing::Test {
 protected:
  std::unique_ptr<Communicator> make(Backend backend = Backend::kAuto) {
    return make_communicator(environment_, {.backend = backend}, warnings_);
  }

  int argc_ = 0;
  char** argv_ = nullptr;
  MpiEnvironment environment_{&argc_, &argv_};
  std::vector<std::string> warnings_;
};

TEST_F(SingleCommunicatorTest, topology_isAlone) {
  const auto communicator = make();

  EXPECT_EQ(communicator->backend_name(), "single");
  EXPECT_EQ(communicator->size(), 1);
  EXPECT_EQ(communicator->topology().hosts.size(), 1u);
  EXPECT_FALSE(environment_.active());
}

TEST_F(SingleCommunicatorTest, collectives_returnTheInput) {
  const auto communicator = make();
  std::vector<float> values = {1, 2, 3};
  std::vector<float> gathered(3);

  communicator->all_reduce(values.data(), 3, DType::kFloat32).wait();
  communicator->reduce_scatter(values.data(), gathered.data(), 3, DType::kFloat32).wait();
  communicator->barrier();

  EXPECT_EQ(values, (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(gathered, values);
  EXPECT_EQ(communicator->exchange("hello"), std::vector<std::string>{"hello"});
}

TEST_F(SingleCommunicatorTest, allocate_isAlignedAndZero) {
  const auto communicator = make();

  const Allocation allocation = communicator->allocate(10000);

  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(allocation.data) % 4096, 0u);
  for (std::size_t i = 0; i < allocation.bytes; ++i) ASSERT_EQ(allocation.data[i], std::byte{0});
}

TEST_F(SingleCommunicatorTest, all_reduce_refusesOtherTypes) {
  std::uint8_t value = 0;
  EXPECT_THROW(make()->all_reduce(&value, 1, DType::kUInt8).wait(), core::Error);
}

TEST_F(SingleCommunicatorTest, makeCommunicator_saysWhatThisBuildOrJobLacks) {
  try {
    make(Backend::kNccl);
    FAIL() << "NCCL must be refused";
  } catch (const core::ConfigError& error) {
    EXPECT_THAT(error.what(), HasSubstr("--device cpu"));
  }
  EXPECT_THROW(make(Backend::kMpi), core::ConfigError);
}

class CountingState final : public WorkState {
 public:
  explicit CountingState(int& waits) : waits_(waits) {}
  void wait() override { ++waits_; }
  void wait_on(Stream) override { ++waits_; }
  bool done() const noexcept override { return false; }

 private:
  int& waits_;
};

TEST(WorkTest, wait_waitsOnceAndMovedFromIsEmpty) {
  int waits = 0;
  Work work(std::make_shared<CountingState>(waits));

  Work moved = std::move(work);
  EXPECT_FALSE(moved.done());
  moved.wait();
  moved.wait();
  work.wait();  // NOLINT(bugprone-use-after-move): the moved-from state is what is tested

  EXPECT_EQ(waits, 1);
  EXPECT_TRUE(work.done());
  static_assert(!std::is_copy_constructible_v<Work>);
}

TEST(StepsTest, advance_stopsAtEveryWait) {
  bool open = false;
  int at = 0;
  const auto run = [](bool& gate, int& place) -> Steps {
    place = 1;
    co_await until([&gate] { return gate; });
    place = 2;
    co_await give_way();
    place = 3;
  };
  Steps steps = run(open, at);

  EXPECT_EQ(steps.advance(), Advance::kMoved);
  EXPECT_EQ(at, 1);
  EXPECT_EQ(steps.advance(), Advance::kWaiting);
  open = true;
  EXPECT_EQ(steps.advance(), Advance::kMoved);
  EXPECT_EQ(at, 2);
  EXPECT_EQ(steps.advance(), Advance::kFinished);
  EXPECT_EQ(steps.advance(), Advance::kFinished);
}

TEST(StepsTest, advance_passesExceptionsThroughNestedSteps) {
  const auto inner = []() -> Steps {
    co_await give_way();
    throw std::runtime_error("inner");
  };
  const auto outer = [&inner]() -> Steps {
    Steps nested = inner();
    co_await all_finished(nested);
  };
  Steps steps = outer();

  EXPECT_THROW(while (steps.advance() != Advance::kFinished){}, std::runtime_error);
}

TEST(DeadlineTest, isOver_afterTheLimitOfWaiting) {
  Deadline deadline(std::chrono::milliseconds(20));

  EXPECT_FALSE(deadline.is_over());
  std::this_thread::sleep_for(std::chrono::milliseconds(25));
  deadline.tick();

  EXPECT_TRUE(deadline.is_over());
}

TEST(DeadlineTest, isOver_notAfterAPauseOfTheProcess) {
  Deadline deadline(std::chrono::milliseconds(1900));

  std::this_thread::sleep_for(
      std::chrono::milliseconds(2000));  // as if it had been stopped: no tick in between
  deadline.tick();

  EXPECT_FALSE(deadline.is_over());
}

TEST(BindingTest, bindingWarning_onlyWhenARankGetsLessThanItsShare) {
  EXPECT_FALSE(binding_warning({.bound_cpus = 8, .available_cpus = 8, .ranks_on_node = 2}));
  EXPECT_FALSE(binding_warning({.bound_cpus = 4, .available_cpus = 8, .ranks_on_node = 2}));
  EXPECT_FALSE(binding_warning({.bound_cpus = 1, .available_cpus = 2, .ranks_on_node = 4}));
  const auto warning = binding_warning({.bound_cpus = 1, .available_cpus = 8, .ranks_on_node = 2});
  ASSERT_TRUE(warning);
  EXPECT_THAT(*warning, HasSubstr("--bind-to none"));
}

TEST(SharedMemoryTest, freeBytes_ofAMissingFolderIsZero) {
  EXPECT_EQ(shared_memory_free_bytes("/no/such/folder"), 0u);
  EXPECT_GT(shared_memory_free_bytes("/dev/shm"), 0u);
}

class LauncherEnvironmentTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
                             "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"}) {
      unsetenv(name);
    }
  }
};

TEST_F(LauncherEnvironmentTest, read_noLauncher) {
  EXPECT_FALSE(LauncherEnvironment::read().launched);
}

TEST_F(LauncherEnvironmentTest, read_openMpi) {
  setenv("OMPI_COMM_WORLD_RANK", "3", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "8", 1);

  const LauncherEnvironment launcher = LauncherEnvironment::read();

  EXPECT_TRUE(launcher.launched);
  EXPECT_EQ(launcher.rank, 3);
  EXPECT_EQ(launcher.size, 8);
  EXPECT_EQ(launcher.source, "OMPI_COMM_WORLD_SIZE");
}

TEST_F(LauncherEnvironmentTest, read_slurmBatchScriptIsNoLauncher) {
  setenv("SLURM_PROCID", "0", 1);

  EXPECT_FALSE(LauncherEnvironment::read().launched);
}

}  // namespace
}  // namespace sidestream::comm
