#include "launch/trainer/run_record.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "tests/core/base/nested_json.hpp"

namespace sidestream::launch {
namespace {

std::filesystem::path temporary_file() {
  return std::filesystem::temp_directory_path() /
         ("run_record_test." + std::to_string(getpid()) + ".json");
}

TEST(RunRecordTest, summarise_takes_medians_after_the_warm_up) {
  std::vector<StepSample> samples(3,
                                  {.step_ns = 900'000'000, .exposed_comm_ns = 9, .reader_ns = 9});
  for (const int ms : {10, 30, 20, 40, 50}) {
    samples.push_back(
        {.step_ns = ms * 1'000'000, .exposed_comm_ns = 2'000'000, .reader_ns = 1'000'000});
  }

  const RunPerformance performance = summarise(samples, 600);

  EXPECT_EQ(performance.steps, 5);
  EXPECT_DOUBLE_EQ(performance.step_ms_p50, 30);
  EXPECT_DOUBLE_EQ(performance.tokens_per_s, 20000);
  EXPECT_DOUBLE_EQ(performance.exposed_comm_ms_p50.value(), 2);
  EXPECT_DOUBLE_EQ(performance.reader_cost_ms_p50, 1);
}

TEST(RunRecordTest, read_gives_what_write_wrote) {
  const RunRecord record{.command_line = "sidestream train \"quoted\"",
                         .started_at = "2026-01-02T03:04:05Z",
                         .world_size = 3,
                         .backend = "single",
                         .precision = "bf16",
                         .parameters = 42,
                         .data = {.train = "1f"},
                         .gpu = "NVIDIA H200",
                         .gpu_driver = "NVRM version: 580.95.05",
                         .warnings = {"one"},
                         .exit_code = 75,
                         .wall_s = {},
                         .last_step = {},
                         .last_val_loss = 2.5,
                         .time_to_target_s = {},
                         .performance = RunPerformance{.steps = 7, .step_ms_p50 = 1.5},
                         .memory = MemoryUse{.planned_bytes = 4000, .peak_bytes = 3000}};
  const auto file = temporary_file();

  write_run_record(record, file);
  const RunRecord back = read_run_record(file);
  std::filesystem::remove(file);

  EXPECT_EQ(back.command_line, record.command_line);
  EXPECT_EQ(back.world_size, 3);
  EXPECT_EQ(back.data.train, "1f");
  EXPECT_EQ(back.data.validation, "");
  EXPECT_EQ(back.gpu, "NVIDIA H200");
  EXPECT_EQ(back.gpu_driver, record.gpu_driver);
  EXPECT_EQ(back.exit_code, 75);
  EXPECT_EQ(back.last_val_loss, 2.5);
  EXPECT_EQ(back.wall_s, std::nullopt);
  EXPECT_EQ(back.performance->steps, 7);
  EXPECT_DOUBLE_EQ(back.performance->step_ms_p50, 1.5);
  EXPECT_EQ(back.memory, record.memory);
}

TEST(RunRecordTest, memory_is_planned_and_measured_or_missing) {
  MemoryUse use{.on_gpu = true, .planned_bytes = 4ll << 30};
  EXPECT_EQ(describe(use), "memory of rank 0: 4.00 GiB were planned, the peak was not measured");
  EXPECT_TRUE(to_json(use)["measured_over_planned"].is_null());
  EXPECT_EQ(memory_use_from(to_json(use)), use);

  use.peak_bytes = 3ll << 30;

  EXPECT_DOUBLE_EQ(to_json(use)["measured_over_planned"].get<double>(), 0.75);
  EXPECT_EQ(describe(use),
            "memory of rank 0: 3.00 GiB of its GPU at the peak, 4.00 GiB were planned (0.75 of "
            "it)");
  EXPECT_EQ(memory_use_from(nullptr), std::nullopt) << "a record of before there was one";
}

// A run that failed: what the rank that writes knew of itself.
TEST(RunRecordTest, verdict_of_one_rank_alone_says_so) {
  RunRecord record;
  record.exit_code = 6;
  record.verdict.emplace();
  record.verdict->bound.word = "comm";
  record.verdict->bound.comm = 0.75;
  const auto file = temporary_file();
  const auto written = [&] {
    write_run_record(record, file);
    return nlohmann::json::parse(std::ifstream(file))["verdict"];
  };

  EXPECT_TRUE(written()["rank_alone"].is_null());
  record.verdict->rank_alone = 0;
  const nlohmann::json verdict = written();
  std::filesystem::remove(file);

  EXPECT_EQ(verdict["rank_alone"], 0);
  EXPECT_EQ(verdict["word"], "comm");
  EXPECT_EQ(verdict["comm"], 0.75);
}

TEST(RunRecordTest, figures_that_cannot_be_are_refused_by_name) {
  const auto file = temporary_file();
  for (const auto& [place, figure] : {std::pair{"/world_size", 1e30},
                                      {"/world_size", -3},
                                      {"/exit_code", 1e30},
                                      {"/performance/step_ms_p50", -100},
                                      {"/memory/measured_peak_bytes", 1e300}}) {
    RunRecord good;
    good.performance = RunPerformance{};
    write_run_record(good, file);
    nlohmann::json record = nlohmann::json::parse(std::ifstream(file));
    record[nlohmann::json::json_pointer(place)] = figure;
    std::ofstream(file) << record;
    const std::string key = std::string(place).substr(std::string(place).rfind('/') + 1);
    try {
      read_run_record(file);
      ADD_FAILURE() << place << " was believed";
    } catch (const core::DataError& error) {
      EXPECT_NE(std::string(error.what()).find("as \"" + key + "\", found"), std::string::npos)
          << error.what();
    }
  }
  std::filesystem::remove(file);
}

TEST(RunRecordTest, read_of_another_file_names_it) {
  const auto file = temporary_file();
  for (const std::string& text :
       {std::string(R"({"schema": 1})"), R"({"performance": )" + core::nested_json() + "}"}) {
    std::ofstream(file) << text;
    try {
      read_run_record(file);
      ADD_FAILURE() << "no exception";
    } catch (const core::DataError& error) {
      EXPECT_NE(std::string(error.what()).find(file.string()), std::string::npos);
    }
  }
  std::filesystem::remove(file);
}

}  // namespace
}  // namespace sidestream::launch
