// A child saves checkpoints in a loop and is killed at random moments: a valid one with the right
// content is always found, and never an older one than the last that the child had announced.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <random>
#include <string_view>
#include <thread>

#include "core/checkpoint/tensor_set.hpp"
#include "tests/core/base/scratch_folder.hpp"
#include "tests/core/checkpoint/samples.hpp"

namespace {

bool names_can_be_exchanged = true;
int (*instead_of_naming)() = nullptr;  // of a pending checkpoint

}  // namespace

// In place of the C library's, for file systems that are not at hand.
extern "C" int renameat2(int from_folder, const char* from, int to_folder, const char* to,
                         unsigned int flags) noexcept {
  if (!names_can_be_exchanged && (flags & RENAME_EXCHANGE) != 0) {
    errno = EINVAL;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_renameat2, from_folder, from, to_folder, to, flags));
}

extern "C" int rename(const char* from, const char* to) noexcept {
  if (instead_of_naming != nullptr && std::string_view(from).ends_with(".pending"))
    return instead_of_naming();
  return ::renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

namespace sidestream::checkpoint {
namespace {

// While it lives, names cannot be exchanged, as on NFS.
struct WithoutExchange {
  WithoutExchange() { names_can_be_exchanged = false; }
  ~WithoutExchange() {
    names_can_be_exchanged = true;
    instead_of_naming = nullptr;
  }
};

constexpr std::size_t kElements = 20'000;

int kills_wanted() {
  const char* text = std::getenv("SIDESTREAM_KILLS");
  return text != nullptr ? std::atoi(text) : 30;
}

// Survives the child: the step whose commit has returned.
class SharedStep {
 public:
  SharedStep()
      : step_(static_cast<std::atomic<std::int64_t>*>(
            ::mmap(nullptr, sizeof(std::atomic<std::int64_t>), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  SharedStep(const SharedStep&) = delete;
  SharedStep& operator=(const SharedStep&) = delete;
  ~SharedStep() { ::munmap(step_, sizeof(std::atomic<std::int64_t>)); }

  std::atomic<std::int64_t>& operator*() { return *step_; }

 private:
  std::atomic<std::int64_t>* step_;
};

[[noreturn]] void save_forever(const CheckpointStore& store, std::int64_t first_step,
                               std::atomic<std::int64_t>& committed) {
  try {
    store.remove_leftovers();
    for (std::int64_t step = first_step;; ++step) {
      save_sample(store, {.step = step, .world_size = 2, .elements = kElements});
      committed = step;
      store.prune(2, step);
      // The same step once more, as after a rollback: the replacement is interrupted as well.
      save_sample(store, {.step = step, .world_size = 2, .elements = kElements});
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child: %s\n", error.what());
  }
  ::_exit(1);
}

void expect_content(const Checkpoint& checkpoint) {
  const std::int64_t step = checkpoint.manifest.step;
  const auto expected = values_of_step(step, kElements);
  const TensorSet model = TensorSet::open_model(checkpoint.folder);
  const TensorSet optimizer = TensorSet::open_optimizer(checkpoint);
  EXPECT_EQ(checkpoint.manifest.training.at("sample"), step * 8);
  for (const TensorView& tensor :
       {model.at("weights"), optimizer.at("moments.0"), optimizer.at("moments.1")}) {
    ASSERT_EQ(tensor.bytes.size(), expected.size() * sizeof(expected[0]));
    EXPECT_EQ(std::memcmp(tensor.bytes.data(), expected.data(), tensor.bytes.size()), 0)
        << tensor.name;
  }
}

TEST(KillTest, a_valid_checkpoint_is_found_after_every_kill) {
  const core::ScratchFolder folder;
  const CheckpointStore store(folder / "checkpoints");
  SharedStep committed;
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  std::int64_t first_step = 1;
  int with_leftovers = 0;
  const int kills = kills_wanted();

  for (int i = 0; i < kills; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) save_forever(store, first_step, *committed);
    while (*committed < first_step) {
      ASSERT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "the child stopped by itself";
      std::this_thread::yield();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
    ::kill(child, SIGKILL);
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the child stopped by itself";

    const NewestCheckpoint newest = store.newest_valid();
    ASSERT_TRUE(newest.checkpoint.has_value());
    EXPECT_TRUE(newest.skipped.empty()) << newest.skipped[0].reason;
    EXPECT_GE(newest.checkpoint->manifest.step, *committed);
    expect_content(*newest.checkpoint);
    with_leftovers += store.remove_leftovers() > 0 ? 1 : 0;
    first_step = newest.checkpoint->manifest.step + 1;
  }

  // Most kills hit a save; otherwise the test would show nothing.
  EXPECT_GT(with_leftovers, kills / 4);
  std::printf("%d kills, %d of them during a save or a removal, %ld checkpoints\n", kills,
              with_leftovers, static_cast<long>(first_step - 1));
}

TEST(KillTest, a_kill_between_two_names_leaves_the_checkpoint_that_is_replaced) {
  const WithoutExchange nfs;
  const core::ScratchFolder folder;
  const CheckpointStore store(folder / "checkpoints");
  const SampleSave save{.step = 4, .world_size = 2, .elements = kElements};
  save_sample(store, save);

  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    instead_of_naming = [] { return ::raise(SIGKILL); };
    save_sample(store, save);
    ::_exit(1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the child gave the new one its name";

  const NewestCheckpoint newest = store.newest_valid();
  ASSERT_TRUE(newest.checkpoint.has_value());
  expect_content(*newest.checkpoint);
  store.remove_leftovers();
  EXPECT_EQ(store.newest_valid().checkpoint->folder, store.final_folder(4));
  EXPECT_THAT(store.steps(), testing::ElementsAre(4));
}

TEST(KillTest, a_name_that_cannot_be_given_leaves_the_checkpoint_that_was_to_be_replaced) {
  const WithoutExchange nfs;
  const core::ScratchFolder folder;
  const CheckpointStore store(folder / "checkpoints");
  const SampleSave save{.step = 4, .world_size = 2, .elements = kElements};
  save_sample(store, save);

  instead_of_naming = [] {
    errno = EIO;
    return -1;
  };
  EXPECT_THAT(checkpoint_error_of([&] { save_sample(store, save); }),
              testing::HasSubstr("Input/output error"));

  const NewestCheckpoint newest = store.newest_valid();
  ASSERT_TRUE(newest.checkpoint.has_value());
  EXPECT_EQ(newest.checkpoint->folder, store.final_folder(4));
  expect_content(*newest.checkpoint);
}

}  // namespace
}  // namespace sidestream::checkpoint
