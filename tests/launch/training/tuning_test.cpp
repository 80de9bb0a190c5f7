#include "launch/process/tuning.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>

#include "core/base/processors.hpp"
#include "launch/process/kept_memory.hpp"

namespace sidestream::launch {
namespace {

TEST(TuningTest, share_of_cores_covers_every_core_once) {
  for (const int cores : {1, 2, 3, 7, 16, 96}) {
    for (int ranks = 1; ranks <= cores; ++ranks) {
      std::multiset<int> seen;
      for (int rank = 0; rank < ranks; ++rank) {
        const CpuShare share = share_of_cores(cores, {rank, ranks});
        EXPECT_GE(share.cores, 1);
        for (int i = 0; i < share.cores; ++i) seen.insert(share.first_core + i);
      }
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(cores));
      EXPECT_EQ(std::set<int>(seen.begin(), seen.end()).size(), static_cast<std::size_t>(cores));
    }
  }
}

TEST(TuningTest, share_of_cores_with_more_ranks_than_cores_shares_them) {
  for (int rank = 0; rank < 5; ++rank) {
    const CpuShare share = share_of_cores(2, {rank, 5});
    EXPECT_EQ(share.cores, 1);
    EXPECT_LT(share.first_core, 2);
  }
}

TEST(TuningTest, ranks_with_the_same_cores_of_a_node_share_them) {
  const comm::Topology topology{
      .rank = 2, .size = 5, .hosts = {"first", "second", "second", "second", "second"}};

  const Seat shared = seat_among(topology, {"0,1", "0,1", "0,1", "2,3", "0,1"});
  EXPECT_EQ(shared.index, 1);
  EXPECT_EQ(shared.count, 3);
  const Seat alone = seat_among(topology, {"0,1", "0,1", "2,3", "4,5", "6,7"});
  EXPECT_EQ(alone.count, 1);
  EXPECT_EQ(share_of_cores(2, alone).cores, 2);
}

TEST(TuningTest, thread_that_is_pinned_and_its_threads_have_their_share_and_others_keep_all) {
  const std::vector<int> all = core::allowed_processors();
  ASSERT_FALSE(all.empty());
  if (all.size() < 2) GTEST_SKIP() << "one processor cannot be shared out";
  std::vector<int> pinned, started_later;
  std::thread([&] {
    pin_and_set_threads(all, {.index = 1, .count = 2}, std::nullopt);
    pinned = core::allowed_processors();
    std::thread([&] { started_later = core::allowed_processors(); }).join();
  }).join();

  const auto half = static_cast<std::ptrdiff_t>(all.size() / 2);
  EXPECT_EQ(pinned, std::vector<int>(all.begin() + half, all.end()));
  EXPECT_EQ(started_later, pinned);
  EXPECT_EQ(core::allowed_processors(), all);
}

TEST(TuningTest, thread_that_is_not_to_be_pinned_has_the_number_of_its_share_alone) {
  const std::vector<int> all = core::allowed_processors();
  int threads = 0;
  std::vector<int> after;
  std::thread([&] {
    threads = pin_and_set_threads(all, {.index = 0, .count = 2}, std::nullopt, Pinning::kOff);
    after = core::allowed_processors();
  }).join();
  EXPECT_EQ(threads, std::max(1, static_cast<int>(all.size()) / 2));
  EXPECT_EQ(after, all);
}

TEST(TuningTest, cores_that_the_system_does_not_tell_are_not_shared_out) {
  EXPECT_EQ(pin_and_set_threads({}, {.index = 1, .count = 2}, std::nullopt), 1);
  EXPECT_EQ(pin_and_set_threads({}, {}, 2), 2);
}

// A product below the smallest normal number, as the processor makes it.
float denormal_product() {
  volatile float small = 1e-38f;
  volatile float tenth = 0.1f;
  return small * tenth;
}

// Of the threads of LibTorch's pool, those where the product is zero.
int threads_that_flush(int threads) {
  std::atomic<int> zeros = 0;
  at::parallel_for(0, threads, 1, [&](std::int64_t begin, std::int64_t end) {
    if (denormal_product() == 0) zeros += static_cast<int>(end - begin);
  });
  return zeros;
}

TEST(TuningTest, denormals_are_zero_on_all_threads_while_they_are_flushed) {
  const int threads = at::get_num_threads();

  flush_denormals_on_all_threads(true);
  const int flushed = threads_that_flush(threads);
  flush_denormals_on_all_threads(false);

  EXPECT_EQ(flushed, threads);
  EXPECT_EQ(threads_that_flush(threads), 0);
}

// Pages that the system has to give this process for 64 MiB that it has had and freed.
long faults_of_memory_used_again() {
  constexpr std::size_t kBytes = 64 << 20;
  keep_freed_memory();
  rusage before{}, after{};
  for (int i = 0; i < 2; ++i) {
    getrusage(RUSAGE_SELF, &before);
    auto* const memory = static_cast<volatile char*>(std::malloc(kBytes));
    for (std::size_t at = 0; at < kBytes; at += 4096) memory[at] = 1;
    std::free(const_cast<char*>(memory));
    getrusage(RUSAGE_SELF, &after);
  }
  return after.ru_minflt - before.ru_minflt;
}

// In a process of its own: what is kept stays kept.
TEST(TuningTest, memory_that_is_freed_is_kept) {
  const pid_t child = fork();
  if (child == 0) _exit(faults_of_memory_used_again() < 100 ? 0 : 1);
  int status = 0;
  waitpid(child, &status, 0);

  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace sidestream::launch
