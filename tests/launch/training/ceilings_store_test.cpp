#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "launch/ceilings/ceilings.hpp"
#include "tests/core/base/nested_json.hpp"
#include "tests/core/base/scratch_folder.hpp"

namespace sidestream::launch {
namespace {

Ceilings measured(int cores, double rate, double seconds = 1) {
  return {.processor = processor_name(),
          .cores = cores,
          .fp32_flops_per_s = rate,
          .bf16_flops_per_s = 2 * rate,
          .memory_bytes_per_s = rate / 10,
          .seconds = seconds};
}

class CeilingsFileTest : public ::testing::Test {
 protected:
  void TearDown() override {
    set("HOME", home_);
    set("XDG_CACHE_HOME", cache_);
  }
  static std::optional<std::string> value_of(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  }
  static void set(const char* name, const std::optional<std::string>& value) {
    if (value)
      setenv(name, value->c_str(), 1);
    else
      unsetenv(name);
  }

 private:
  std::optional<std::string> home_ = value_of("HOME"), cache_ = value_of("XDG_CACHE_HOME");
};

TEST_F(CeilingsFileTest, lies_where_this_user_keeps_what_is_measured) {
  set("XDG_CACHE_HOME", "/cache");
  EXPECT_EQ(ceilings_file(), "/cache/sidestream/ceilings.json");
  set("XDG_CACHE_HOME", "");
  set("HOME", "/mine");
  EXPECT_EQ(ceilings_file(), "/mine/.cache/sidestream/ceilings.json");
}

TEST_F(CeilingsFileTest, without_a_home_it_is_not_where_everybody_can_put_one) {
  const passwd* user = getpwuid(getuid());
  const std::filesystem::path home = user == nullptr ? "/" : user->pw_dir;
  set("XDG_CACHE_HOME", std::nullopt);
  for (const auto& unset : {std::optional<std::string>(), std::optional<std::string>("")}) {
    set("HOME", unset);
    EXPECT_EQ(ceilings_file(), home / ".cache/sidestream/ceilings.json");
  }
}

TEST(CeilingsTest, come_back_as_they_were_stored) {
  const core::ScratchFolder scratch;
  Ceilings ceilings = measured(2, 1e11);
  ceilings.link_bytes_per_s = {{2, 5e9}};
  ceilings.device = DeviceCeilings{.name = "H",
                                   .flops_per_s = {{"bf16", 1e15}},
                                   .memory_bytes_per_s = 3e12,
                                   .link_bytes_per_s = {{4, 3e11}},
                                   .gather_paths = {{8, {2e11, 3e11}}}};

  save_ceilings(ceilings, scratch / "c.json");
  const auto loaded = load_ceilings(scratch / "c.json", "H");

  ASSERT_TRUE(loaded && loaded->device);
  EXPECT_EQ(loaded->fp32_flops_per_s, 1e11);
  EXPECT_EQ(loaded->link_bytes_per_s.at(2), 5e9);
  EXPECT_EQ(loaded->device->flops_per_s.at("bf16"), 1e15);
  EXPECT_EQ(loaded->device->link_bytes_per_s.at(4), 3e11);
  const PathRates paths = loaded->device->gather_paths.at(8);
  EXPECT_EQ(paths.kernels_bytes_per_s, 2e11);
  EXPECT_EQ(paths.copy_engines_bytes_per_s, 3e11);
}

// They are measured by themselves: what measures the GPU again leaves them.
TEST(CeilingsTest, paths_of_nccl_stay_when_a_gpu_is_measured_again) {
  Ceilings stored = measured(2, 1e11), fresh = measured(2, 1e11);
  stored.device = DeviceCeilings{.name = "H", .gather_paths = {{8, {2e11, 3e11}}}};
  fresh.device = DeviceCeilings{.name = "H"};

  EXPECT_EQ(keep_better(stored, fresh).kept.device->gather_paths.size(), 1u);
}

TEST(CeilingsTest, figures_of_another_gpu_are_not_kept) {
  for (const char* other : {"A", ""}) {
    Ceilings stored = measured(2, 1e11), fresh = measured(2, 1e11);
    stored.device = DeviceCeilings{.name = other, .flops_per_s = {{"bf16", 9e14}}};
    fresh.device = DeviceCeilings{.name = *other == 0 ? "" : "H", .flops_per_s = {{"bf16", 1e14}}};
    EXPECT_EQ(keep_better(stored, fresh).kept.device->flops_per_s.at("bf16"), 1e14) << other;
  }
}

Ceilings measured_with(const std::string& gpu, double rate) {
  Ceilings ceilings = measured(2, 1e11);
  ceilings.device = DeviceCeilings{.name = gpu, .flops_per_s = {{"bf16", rate}}};
  return ceilings;
}

TEST(CeilingsTest, machines_with_one_processor_and_other_gpus_keep_their_figures) {
  const core::ScratchFolder scratch;
  const auto rate_of = [&](const char* gpu) {
    return load_ceilings(scratch / "c.json", gpu)->device->flops_per_s.at("bf16");
  };
  save_ceilings(measured_with("H", 9e14), scratch / "c.json");
  save_ceilings(measured_with("A", 3e14), scratch / "c.json");
  save_ceilings(measured(2, 2e11), scratch / "c.json");

  EXPECT_EQ(rate_of("H"), 9e14);
  EXPECT_EQ(rate_of("A"), 3e14);
  EXPECT_FALSE(load_ceilings(scratch / "c.json", "B")->device);
  EXPECT_FALSE(load_ceilings(scratch / "c.json")->device);
  EXPECT_EQ(load_ceilings(scratch / "c.json")->fp32_flops_per_s, 2e11);
}

// One GPU of a processor, without a list.
TEST(CeilingsTest, gpus_in_files_of_the_second_schema_are_read_and_kept) {
  const core::ScratchFolder scratch;
  std::ofstream(scratch / "c.json") << R"({"schema": 2, "machines": {")" + processor_name() +
                                           R"(": {"processor": ")" + processor_name() +
                                           R"(", "cores": 2, "fp32_flops_per_s": 5,
    "bf16_flops_per_s": 6, "memory_bytes_per_s": 7, "device": {"name": "H", "flops_per_s":
    {"bf16": 8}, "memory_bytes_per_s": 9, "host_to_device_bytes_per_s": 10,
    "device_to_host_bytes_per_s": 11, "link_bytes_per_s": {"4": 12}}}}})";
  ASSERT_TRUE(load_ceilings(scratch / "c.json", "H")->device);

  save_ceilings(measured_with("A", 3e14), scratch / "c.json");

  EXPECT_EQ(load_ceilings(scratch / "c.json", "H")->device->link_bytes_per_s.at(4), 12);
  EXPECT_EQ(load_ceilings(scratch / "c.json", "A")->device->flops_per_s.at("bf16"), 3e14);
}

TEST(CeilingsTest, machines_that_share_a_home_keep_their_entries) {
  const core::ScratchFolder scratch;
  Ceilings other = measured(8, 9e11);
  other.processor = "another processor";
  save_ceilings(other, scratch / "c.json");
  save_ceilings(measured(2, 1e11), scratch / "c.json");

  std::ifstream file(scratch / "c.json");
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_THAT(text, ::testing::HasSubstr("another processor"));
  EXPECT_EQ(load_ceilings(scratch / "c.json")->cores, 2);
}

// The file is read and replaced, and has to be as the one before has left it.
TEST(CeilingsTest, measurements_that_end_at_the_same_time_are_all_stored) {
  constexpr int kThreads = 8;
  const core::ScratchFolder scratch;
  const auto file = scratch / "c.json";
  const auto gpu = [](int i) { return "GPU " + std::to_string(i); };
  const auto at_once = [](const std::function<void(int)>& what) {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kThreads; ++i) threads.emplace_back([&what, i] { what(i); });
  };

  at_once([&](int i) { save_ceilings(measured_with(gpu(i), 1e14), file); });
  at_once([&](int i) {
    for (int k = 0; k < 10; ++k) {
      update_ceilings(file, gpu(i), [&](std::optional<Ceilings> stored) {
        stored.value().link_bytes_per_s[2 + 10 * i + k] = 1e9;
        return stored;
      });
    }
  });

  for (int i = 0; i < kThreads; ++i) EXPECT_TRUE(load_ceilings(file, gpu(i))->device) << i;
  EXPECT_EQ(load_ceilings(file)->link_bytes_per_s.size(), 10u * kThreads);
}

TEST(CeilingsTest, change_that_gives_nothing_leaves_the_file_as_it_was) {
  const core::ScratchFolder scratch;
  std::vector<bool> had_one;
  const auto ask = [&](const std::optional<Ceilings>& stored) -> std::optional<Ceilings> {
    had_one.push_back(stored.has_value());
    return std::nullopt;
  };
  update_ceilings(scratch / "c.json", "", ask);
  EXPECT_FALSE(std::filesystem::exists(scratch / "c.json"));
  save_ceilings(measured(2, 1e11), scratch / "c.json");

  update_ceilings(scratch / "c.json", "", ask);

  EXPECT_EQ(load_ceilings(scratch / "c.json")->fp32_flops_per_s, 1e11);
  EXPECT_EQ(had_one, (std::vector<bool>{false, true}));
}

TEST(CeilingsTest, files_of_the_first_schema_are_read) {
  const core::ScratchFolder scratch;
  std::ofstream(scratch / "c.json") << R"({"processor": ")" + processor_name() +
                                           R"(", "cores": 2, "fp32_flops_per_s": 5,
    "bf16_flops_per_s": 6, "memory_bytes_per_s": 7})";
  EXPECT_EQ(load_ceilings(scratch / "c.json")->memory_bytes_per_s, 7);
}

TEST(CeilingsTest, what_cannot_be_read_was_not_measured) {
  const core::ScratchFolder scratch;
  EXPECT_FALSE(load_ceilings(scratch / "c.json"));
  for (const std::string& text :
       {std::string("{"), R"({"machines": )" + core::nested_json() + "}"}) {
    std::ofstream(scratch / "c.json") << text;
    EXPECT_FALSE(load_ceilings(scratch / "c.json"));
  }
}

TEST(KeepBetterTest, a_quick_measurement_does_not_lower_a_figure) {
  const KeptCeilings result = keep_better(measured(2, 1e11, 3), measured(2, 0.8e11, 0.1));

  EXPECT_EQ(result.kept.fp32_flops_per_s, 1e11);
  EXPECT_EQ(result.remarks.size(), 3u);
  EXPECT_EQ(result.kept.seconds, 3);
}

TEST(KeepBetterTest, a_higher_figure_is_taken) {
  const KeptCeilings result = keep_better(measured(2, 1e11), measured(2, 1.2e11));

  EXPECT_EQ(result.kept.fp32_flops_per_s, 1.2e11);
  EXPECT_TRUE(result.remarks.empty());
}

TEST(KeepBetterTest, fewer_cores_change_nothing_and_more_replace) {
  EXPECT_EQ(keep_better(measured(2, 1e11), measured(1, 9e11)).kept.fp32_flops_per_s, 1e11);
  EXPECT_EQ(keep_better(measured(2, 1e11), measured(1, 9e11)).kept.cores, 2);
  EXPECT_EQ(keep_better(measured(1, 1e11), measured(2, 0.9e11)).kept.fp32_flops_per_s, 0.9e11);
}

TEST(KeepBetterTest, links_and_devices_stay) {
  Ceilings stored = measured(2, 1e11);
  stored.link_bytes_per_s = {{2, 5e9}, {4, 3e9}};
  stored.device = DeviceCeilings{.name = "H", .flops_per_s = {{"bf16", 2.0}}};
  Ceilings fresh = measured(2, 1e11);
  fresh.device = DeviceCeilings{.name = "H", .flops_per_s = {{"bf16", 1.0}}};

  const Ceilings kept = keep_better(stored, fresh).kept;

  EXPECT_EQ(kept.link_bytes_per_s.size(), 2u);
  EXPECT_EQ(kept.device->flops_per_s.at("bf16"), 2.0);
}

}  // namespace
}  // namespace sidestream::launch
