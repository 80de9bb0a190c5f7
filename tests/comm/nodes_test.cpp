// Several nodes: started by run_in_namespaces.sh, which gives every node at least one rank.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <sched.h>
#include <sys/mount.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <thread>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "tests/comm/communicator_fixture.hpp"

namespace sidestream::test {
namespace {

using core::DType;

class NodesTest : public ::testing::Test {
 protected:
  std::unique_ptr<comm::Communicator> communicator_ = make_host_communicator(true);
};

TEST_F(NodesTest, topology_twoNodes) {
  const comm::Topology& topology = communicator_->topology();

  EXPECT_EQ(topology.node_count, 2);
  EXPECT_LT(topology.local_size, topology.size);
  EXPECT_EQ(topology.node, topology.rank < topology.size - topology.size / 2 ? 0 : 1);
  EXPECT_EQ(communicator_->backend_name(), "mpi+shared-memory");
}

// While it stands this thread sees no other process in /proc, as in a container of its own.
class ProcessesOutOfSight {
 public:
  ProcessesOutOfSight() : before_(::open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC)) {
    EXPECT_EQ(::unshare(CLONE_NEWNS), 0);
    EXPECT_EQ(::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    EXPECT_EQ(::mount("none", "/proc", "tmpfs", 0, nullptr), 0);
  }
  ProcessesOutOfSight(const ProcessesOutOfSight&) = delete;
  ProcessesOutOfSight& operator=(const ProcessesOutOfSight&) = delete;
  ~ProcessesOutOfSight() { EXPECT_EQ(::setns(before_.get(), CLONE_NEWNS), 0); }

 private:
  core::UniqueFd before_;
};

// The ranks of one node cannot open each other's files where those of the other can: all come to
// the same meetings, and go on together.
TEST_F(NodesTest, allocate_whereOneNodeSharesInAnotherWay) {
  const comm::Topology& topology = communicator_->topology();
  std::optional<ProcessesOutOfSight> apart;
  if (topology.node == 0 && topology.local_rank == 1) apart.emplace();

  auto* data = reinterpret_cast<float*>(communicator_->allocate(1000 * sizeof(float)).data);
  apart.reset();
  std::fill_n(data, 1000, 1.0F);
  communicator_->all_reduce(data, 1000, DType::kFloat32).wait();

  EXPECT_EQ(data[999], static_cast<float>(communicator_->size()));
}

// Lane by lane over nodes of different sizes, in an allocation and outside.
TEST_F(NodesTest, all_reduce_sumsOverNodes) {
  const std::size_t count = 1'500'001;
  auto* allocated = reinterpret_cast<float*>(communicator_->allocate(count * sizeof(float)).data);
  std::vector<float> foreign(count);
  for (std::size_t i = 0; i < count; ++i) {
    foreign[i] = static_cast<float>(small_value(i, communicator_->rank()));
    allocated[i] = foreign[i];
  }

  communicator_->all_reduce(allocated, count, DType::kFloat32).wait();
  communicator_->all_reduce(foreign.data(), count, DType::kFloat32).wait();

  for (std::size_t i = 0; i < count; ++i) {
    int expected = 0;
    for (int rank = 0; rank < communicator_->size(); ++rank) expected += small_value(i, rank);
    ASSERT_EQ(allocated[i], static_cast<float>(expected)) << i;
    ASSERT_EQ(foreign[i], static_cast<float>(expected)) << i;
  }
}

TEST_F(NodesTest, reduce_scatter_and_all_gather_agreeWithAllReduce) {
  const auto ranks = static_cast<std::size_t>(communicator_->size());
  for (const std::size_t count :
       {std::size_t{4099}, std::size_t{600001}}) {  // the latter in chunks
    std::vector<std::int64_t> values(count * ranks);
    std::iota(values.begin(), values.end(), communicator_->rank());
    std::vector<std::int64_t> slice(count);
    std::vector<std::int64_t> joined(count * ranks);

    communicator_->reduce_scatter(values.data(), slice.data(), count, DType::kInt64).wait();
    communicator_->all_gather(slice.data(), joined.data(), count, DType::kInt64).wait();
    communicator_->all_reduce(values.data(), values.size(), DType::kInt64).wait();

    EXPECT_EQ(joined, values);
  }
}

TEST_F(NodesTest, wait_lateRankOfTheOtherNodeIsNamed) {
  const int last = communicator_->size() - 1;
  std::vector<float> values(100);
  if (communicator_->rank() == last) {
    // Starts the operation only when the others have given up.
    std::this_thread::sleep_for(std::chrono::seconds(2));
    return;
  }

  std::string message;
  try {
    communicator_
        ->all_reduce(values.data(), values.size(), DType::kFloat32,
                     {.deadline = std::chrono::milliseconds(800)})
        .wait();
  } catch (const core::Error& error) {
    message = error.what();
  }

  EXPECT_THAT(message, ::testing::HasSubstr("missing: "));
  EXPECT_THAT(message, ::testing::HasSubstr("rank " + std::to_string(last) + " on "));
  EXPECT_THAT(message, ::testing::HasSubstr("(last started operation 0)"));
}

}  // namespace
}  // namespace sidestream::test
