#include "core/checkpoint/checkpoint_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/digest.hpp"
#include "core/checkpoint/find_checkpoint.hpp"
#include "core/checkpoint/newer_format_error.hpp"
#include "core/checkpoint/safetensors_reader.hpp"
#include "core/checkpoint/unreadable_error.hpp"
#include "tests/core/checkpoint/as_anybody.hpp"
#include "tests/core/checkpoint/store_case.hpp"

namespace sidestream::checkpoint {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CheckpointStoreTest : public StoreCase {
 protected:
  // After damage to step 2: step 1 is used, and step 2 is reported with this reason.
  void expect_fallback(const std::string& reason) const {
    const NewestCheckpoint newest = store_.newest_valid();
    ASSERT_TRUE(newest.checkpoint.has_value());
    EXPECT_EQ(newest.checkpoint->manifest.step, 1);
    ASSERT_EQ(newest.skipped.size(), 1u);
    EXPECT_EQ(newest.skipped[0].folder, store_.final_folder(2));
    EXPECT_THAT(newest.skipped[0].reason, HasSubstr(reason));
  }
};

TEST_F(CheckpointStoreTest, commit_gives_the_folder_its_final_name_and_all_files) {
  save_steps({100});

  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_ / "checkpoints" / "step_00000100")) {
    names.push_back(entry.path().filename());
  }
  EXPECT_THAT(names,
              testing::UnorderedElementsAre("manifest.json", "model.safetensors", "config.json",
                                            "optimizer_00000_of_00003.safetensors",
                                            "optimizer_00001_of_00003.safetensors",
                                            "optimizer_00002_of_00003.safetensors"));
  EXPECT_FALSE(fs::exists(store_.pending_folder(100)));
}

TEST_F(CheckpointStoreTest, newest_valid_returns_the_manifest_of_the_highest_step) {
  save_steps({9, 10, 100});

  const NewestCheckpoint newest = store_.newest_valid();

  ASSERT_TRUE(newest.checkpoint.has_value());
  EXPECT_EQ(newest.checkpoint->manifest.step, 100);
  EXPECT_EQ(newest.checkpoint->manifest.training.at("sample"), 800);
  EXPECT_THAT(newest.skipped, IsEmpty());
  EXPECT_EQ(store_.newest_valid(99).checkpoint->manifest.step, 10);
  EXPECT_FALSE(store_.newest_valid(8).checkpoint.has_value());
}

TEST_F(CheckpointStoreTest, newest_valid_takes_no_older_one_for_one_that_cannot_be_read_now) {
  save_steps({1, 2});
  fs::permissions(folder_ / ".", fs::perms(0755));
  for (const char* name : {"manifest.json", "model.safetensors"}) {
    fs::permissions(file(2, name), fs::perms::none);
    try {
      const AsAnybody user;
      store_.newest_valid();
      ADD_FAILURE() << name;
    } catch (const UnreadableError& error) {
      EXPECT_THAT(error.what(), HasSubstr(name));
      EXPECT_THAT(error.what(), HasSubstr("Permission denied"));
      EXPECT_THAT(error.what(), HasSubstr("move it away to go on from the one before"));
    }
    fs::permissions(file(2, name), fs::perms(0644));
  }
  EXPECT_EQ(store_.newest_valid().checkpoint->manifest.step, 2);
}

TEST_F(CheckpointStoreTest, newest_valid_of_an_absent_folder_is_empty) {
  EXPECT_FALSE(store_.newest_valid().checkpoint.has_value());
  EXPECT_EQ(store_.remove_leftovers(), 0u);
}

TEST_F(CheckpointStoreTest, truncated_file_is_skipped) {
  save_steps({1, 2});
  fs::resize_file(file(2, "model.safetensors"), 500);

  expect_fallback("found 500");
}

TEST_F(CheckpointStoreTest, empty_file_is_skipped) {
  save_steps({1, 2});
  fs::resize_file(file(2, "optimizer_00001_of_00003.safetensors"), 0);

  expect_fallback("found 0");
}

TEST_F(CheckpointStoreTest, flipped_bit_is_skipped) {
  save_steps({1, 2});
  flip_bit(file(2, "optimizer_00002_of_00003.safetensors"), 4000, 3);

  expect_fallback("expected SHA-256");
}

TEST_F(CheckpointStoreTest, missing_file_is_skipped) {
  save_steps({1, 2});
  fs::remove(file(2, "model.safetensors"));

  expect_fallback("no such file");
}

TEST_F(CheckpointStoreTest, missing_manifest_is_skipped) {
  save_steps({1, 2});
  fs::remove(file(2, "manifest.json"));

  expect_fallback("no manifest.json");
}

TEST_F(CheckpointStoreTest, damaged_manifest_is_skipped) {
  save_steps({1, 2});
  const std::string text = core::read_file(file(2, "manifest.json"));
  flip_bit(file(2, "manifest.json"), text.find("\"sample\": 16") + 11);

  expect_fallback("matches its sha256");
}

TEST_F(CheckpointStoreTest, link_in_place_of_a_file_is_skipped) {
  save_steps({1, 2});
  fs::rename(file(2, "model.safetensors"), folder_ / "elsewhere");
  fs::create_symlink(folder_ / "elsewhere", file(2, "model.safetensors"));

  expect_fallback("expected a regular file");
}

TEST_F(CheckpointStoreTest, link_in_place_of_a_checkpoint_is_skipped) {
  save_steps({1, 2});
  fs::rename(store_.final_folder(2), folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", store_.final_folder(2));

  expect_fallback(store_.final_folder(2).string() + " is a link");
  EXPECT_EQ(store_.set_aside_after(1).size(), 1u);
  fs::create_directory_symlink(folder_ / "nowhere", store_.final_folder(3));
  save_steps({3});
  EXPECT_EQ(store_.newest_valid().checkpoint->manifest.step, 3);
}

TEST_F(CheckpointStoreTest, folder_under_the_name_of_another_step_is_skipped) {
  save_steps({1, 5});
  fs::rename(store_.final_folder(5), store_.final_folder(2));

  expect_fallback("expected step 2 in its manifest, found step 5");
}

TEST_F(CheckpointStoreTest, newer_format_is_refused_and_not_skipped) {
  save_steps({1, 2});
  auto document = nlohmann::json::parse(core::read_file(file(2, "manifest.json")));
  document.erase("sha256");
  document["format_version"] = 7;
  document["sha256"] = core::sha256_hex(document.dump());
  core::write_file_atomically(file(2, "manifest.json"), document.dump());

  EXPECT_THROW(store_.newest_valid(), NewerFormatError);
  EXPECT_EQ(store_.newest_valid(1).checkpoint->manifest.step, 1);
}

TEST_F(CheckpointStoreTest, save_of_the_same_step_replaces_it) {
  save_sample(store_, {.step = 4, .world_size = 3});
  save_sample(store_, {.step = 4, .world_size = 1});

  EXPECT_EQ(store_.newest_valid().checkpoint->manifest.world_size, 1);
  EXPECT_THAT(store_.steps(), ElementsAre(4));
  EXPECT_FALSE(fs::exists(store_.pending_folder(4)));
}

TEST_F(CheckpointStoreTest, a_file_under_the_name_of_a_checkpoint_is_set_aside) {
  save_steps({1});
  core::write_file_atomically(store_.final_folder(4), "somebody's");
  std::string warning;
  save_sample(store_, {.step = 4}, [&](const std::string& text) { warning = text; });

  EXPECT_EQ(store_.newest_valid().checkpoint->manifest.step, 4);
  EXPECT_THAT(warning, HasSubstr("is a file and no checkpoint"));
  EXPECT_EQ(core::read_file(store_.final_folder(4).string() + ".set-aside"), "somebody's");
}

TEST_F(CheckpointStoreTest, commit_with_a_file_missing_fails_and_keeps_the_old_ones) {
  save_steps({1});
  store_.begin(2);
  const Manifest manifest = write_sample_files(store_, {.step = 2});
  fs::remove(store_.pending_folder(2) / "model.safetensors");

  EXPECT_THAT(checkpoint_error_of([&] { store_.commit(manifest); }), HasSubstr("no such file"));
  EXPECT_FALSE(fs::exists(store_.pending_folder(2)));
  EXPECT_THAT(store_.steps(), ElementsAre(1));
}

TEST_F(CheckpointStoreTest, abandon_removes_the_pending_folder) {
  store_.begin(3);
  write_sample_files(store_, {.step = 3});

  store_.abandon(3);

  EXPECT_FALSE(fs::exists(store_.pending_folder(3)));
  EXPECT_FALSE(store_.newest_valid().checkpoint.has_value());
}

TEST_F(CheckpointStoreTest, remove_leftovers_removes_half_written_saves_only) {
  save_steps({1});
  store_.begin(2);
  fs::create_directories(folder_ / "checkpoints" / "step_00000003.trash");
  fs::create_directories(folder_ / "checkpoints" / "my notes.pending");

  EXPECT_EQ(store_.remove_leftovers(), 2u);
  EXPECT_TRUE(fs::exists(folder_ / "checkpoints" / "my notes.pending"));
  EXPECT_EQ(store_.newest_valid().checkpoint->manifest.step, 1);
}

TEST_F(CheckpointStoreTest, begin_removes_what_an_earlier_attempt_left) {
  store_.begin(2);
  write_sample_files(store_, {.step = 2});

  store_.begin(2);

  EXPECT_TRUE(fs::is_empty(store_.pending_folder(2)));
}

TEST_F(CheckpointStoreTest, later_ones_are_set_aside_and_stay_whole) {
  save_steps({1, 2, 3});

  const auto moved = store_.set_aside_after(1);
  ASSERT_THAT(moved, ElementsAre(fs::path(store_.final_folder(2).string() + ".set-aside"),
                                 fs::path(store_.final_folder(3).string() + ".set-aside")));
  EXPECT_THAT(store_.steps(), ElementsAre(1));
  EXPECT_EQ(verify_checkpoint(moved[1]).step, 3);

  save_steps({3});
  EXPECT_THAT(store_.set_aside_after(2),
              ElementsAre(fs::path(store_.final_folder(3).string() + ".set-aside-2")));
  EXPECT_THAT(store_.set_aside_after(1), IsEmpty());
}

TEST_F(CheckpointStoreTest, full_disk_names_the_cause_and_keeps_the_old_checkpoint) {
  save_steps({1});

  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1 << 16, 1 << 16};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string message =
        checkpoint_error_of([&] { save_sample(store_, {.step = 2, .elements = 100'000}); });
    store_.abandon(2);
    ::_exit(message.find("cannot write") != std::string::npos &&
                    message.find("File too large") != std::string::npos
                ? 0
                : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);

  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_FALSE(fs::exists(store_.pending_folder(2)));
  EXPECT_EQ(store_.newest_valid().checkpoint->manifest.step, 1);
}

TEST_F(CheckpointStoreTest, mapped_source_may_be_saved_over) {
  save_sample(store_, {.step = 1});
  const SafetensorsReader old(file(1, "model.safetensors"));
  const auto before = values_of_step(1, 1000);

  save_sample(store_, {.step = 1, .elements = 10});

  const auto bytes = old.at("weights").bytes;
  EXPECT_EQ(std::memcmp(bytes.data(), before.data(), bytes.size()), 0);
}

TEST_F(CheckpointStoreTest, writer_refuses_names_that_leave_the_folder) {
  store_.begin(1);
  CheckpointWriter writer(store_.pending_folder(1));

  EXPECT_THAT(checkpoint_error_of([&] { writer.add_text("../escape", "x"); }),
              HasSubstr("a plain file name"));
}

TEST_F(CheckpointStoreTest, find_checkpoint_takes_a_checkpoint_a_run_and_a_folder_of_checkpoints) {
  save_steps({1, 2});

  EXPECT_EQ(find_checkpoint(store_.final_folder(1)).checkpoint.manifest.step, 1);
  EXPECT_EQ(find_checkpoint(folder_.path()).checkpoint.manifest.step, 2);
  EXPECT_EQ(find_checkpoint(folder_ / "checkpoints").checkpoint.manifest.step, 2);
  EXPECT_THAT(checkpoint_error_of([&] { find_checkpoint(folder_ / "absent"); }),
              HasSubstr("found none"));

  fs::remove(file(1, "config.json"));
  fs::remove(file(2, "config.json"));
  EXPECT_THAT(checkpoint_error_of([&] { find_checkpoint(folder_.path()); }),
              HasSubstr("found 2 that cannot be used"));
}

}  // namespace
}  // namespace sidestream::checkpoint
