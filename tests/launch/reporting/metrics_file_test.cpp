#include "launch/reporting/metrics_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "tests/core/base/full_disk.hpp"

namespace sidestream::launch {
namespace {

using ::testing::HasSubstr;

class MetricsFileTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override {
    std::filesystem::remove(path_);
    std::filesystem::remove(path_.string() + ".damaged");
  }

  std::string content() const {
    std::ifstream file(path_);
    std::stringstream text;
    text << file.rdbuf();
    return text.str();
  }
  void append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }

  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> all;
    for (const StepMetrics& metrics : read_metrics(path_)) all.push_back(metrics.step);
    return all;
  }

  std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                ("metrics_file_test_" + std::to_string(getpid()) + ".jsonl");
};

StepMetrics at_step(std::int64_t step) {
  return {.step = step, .epoch = 2, .loss = 1.0 / 3.0, .lr = 6e-4};
}

TEST_F(MetricsFileTest, metrics_line_has_the_documented_fields_in_order) {
  const auto object = nlohmann::ordered_json::parse(metrics_line(at_step(1)));

  std::vector<std::string> keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  EXPECT_THAT(keys, ::testing::ElementsAre("step", "epoch", "loss", "grad_norm", "lr",
                                           "batch_cost_s", "reader_cost_s", "samples_per_s",
                                           "tokens_per_s", "mfu", "memory_bytes", "eta_s"));
  EXPECT_TRUE(object["mfu"].is_null());
  EXPECT_EQ(object["loss"].get<double>(), 1.0 / 3.0);
}

TEST_F(MetricsFileTest, metrics_line_of_fp16_has_the_loss_scale_and_what_it_left_out) {
  StepMetrics metrics = at_step(1);
  metrics.loss_scale = 32768;
  metrics.left_out = 2;
  MetricsWriter(path_).write(metrics);

  const auto object = nlohmann::json::parse(metrics_line(metrics));

  EXPECT_EQ(object["loss_scale"], 32768);
  EXPECT_EQ(object["left_out"], 2);
  EXPECT_EQ(read_metrics(path_).at(0).loss_scale, metrics.loss_scale);
  EXPECT_EQ(read_metrics(path_).at(0).left_out, metrics.left_out);
}

TEST_F(MetricsFileTest, metrics_line_not_finite_is_null) {
  StepMetrics metrics = at_step(1);
  metrics.loss = std::numeric_limits<double>::quiet_NaN();
  metrics.grad_norm = std::numeric_limits<double>::infinity();

  const auto object = nlohmann::json::parse(metrics_line(metrics));

  EXPECT_TRUE(object["loss"].is_null());
  EXPECT_TRUE(object["grad_norm"].is_null());
}

TEST_F(MetricsFileTest, write_then_read_gives_the_same_bits) {
  StepMetrics metrics = {.step = 7,
                         .epoch = 1,
                         .loss = 0.1 + 0.2,
                         .grad_norm = 1e-300,
                         .lr = 6e-4,
                         .batch_cost_s = 0.5,
                         .reader_cost_s = 0.25,
                         .samples_per_s = 3,
                         .tokens_per_s = 4,
                         .mfu = 0.45,
                         .memory_bytes = (std::int64_t{1} << 53) + 1,
                         .eta_s = 12.5,
                         .val_loss = 2.5};
  MetricsWriter(path_).write(metrics);

  EXPECT_THAT(read_metrics(path_), ::testing::ElementsAre(metrics));
}

TEST_F(MetricsFileTest, writer_resumed_drops_later_steps_and_a_torn_line) {
  {
    MetricsWriter writer(path_);
    for (int step = 1; step <= 5; ++step) writer.write(at_step(step));
  }
  append("{\"step\":6,\"epo");

  EXPECT_EQ(steps(), (std::vector<std::int64_t>{1, 2, 3, 4, 5}));
  {
    MetricsWriter resumed(path_, 3);
    resumed.write(at_step(4));
  }

  EXPECT_EQ(steps(), (std::vector<std::int64_t>{1, 2, 3, 4}));
  EXPECT_EQ(content().back(), '\n');
}

TEST_F(MetricsFileTest, writer_resumed_with_nothing_to_cut_leaves_the_file_alone) {
  MetricsWriter(path_).write(at_step(1));
  const std::string before = content();

  MetricsWriter resumed(path_, 1);

  EXPECT_EQ(content(), before);
}

TEST_F(MetricsFileTest, writer_resumed_tells_of_lines_that_it_cannot_read) {
  append(metrics_line(at_step(1)) + "\n{\"step\": ?}\n" + metrics_line(at_step(3)) + "\n");
  const std::string before = content();

  const MetricsWriter resumed(path_, 3);

  EXPECT_EQ(resumed.damage(), path_.string() + ": 1 line is no metrics and is left out; " +
                                  path_.string() + ".damaged is the file as it was");
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{1, 3}));
  EXPECT_EQ(core::read_file(path_.string() + ".damaged"), before);
  EXPECT_EQ(MetricsWriter(path_, 3).damage(), "");
}

TEST_F(MetricsFileTest, writer_new_run_starts_empty) {
  MetricsWriter(path_).write(at_step(1));

  MetricsWriter fresh(path_);

  EXPECT_EQ(content(), "");
}

TEST_F(MetricsFileTest, rewind_drops_later_steps_and_goes_on) {
  MetricsWriter writer(path_);
  for (int step = 1; step <= 5; ++step) writer.write(at_step(step));

  writer.rewind(3);
  writer.write(at_step(4));

  EXPECT_EQ(steps(), (std::vector<std::int64_t>{1, 2, 3, 4}));
}

TEST_F(MetricsFileTest, rewind_of_what_cannot_be_written_throws_and_loses_nothing) {
  MetricsWriter writer(path_);
  writer.write(at_step(1));
  writer.write(at_step(2));
  const std::string before = content();
  {
    const core::FullDisk full(before.size());
    writer.write(at_step(3));
    EXPECT_THROW(writer.rewind(1), core::Error);
    EXPECT_EQ(content(), before);
  }
  writer.write(at_step(2));
  EXPECT_EQ(steps(), (std::vector<std::int64_t>{1, 2, 3, 2}));
}

TEST_F(MetricsFileTest, read_damaged_line_names_file_and_byte) {
  append(metrics_line(at_step(1)) + "\n{\"step\": ?}\n");
  const std::string offset = std::to_string(metrics_line(at_step(1)).size() + 1 + 9);

  try {
    read_metrics(path_);
    FAIL() << "accepted";
  } catch (const core::DataError& error) {
    EXPECT_THAT(error.what(), HasSubstr(path_.string()));
    EXPECT_THAT(error.what(), HasSubstr("byte " + offset + ": expected a line of metrics"));
  }
}

TEST_F(MetricsFileTest, writer_folder_absent_throws) {
  EXPECT_THROW(MetricsWriter("/no/such/folder/metrics.jsonl"), core::Error);
}

}  // namespace
}  // namespace sidestream::launch
