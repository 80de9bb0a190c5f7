// Lines of steps whose numbers come with the next step, as on a GPU, are those of steps that have
// theirs at once.
#include "launch/trainer/run_reporter.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "launch/reporting/metrics_file.hpp"

namespace sidestream::launch {
namespace {

constexpr std::int64_t kSteps = 6, kEvaluated = 4;

StepNumbers numbers_of(std::int64_t step) {
  const auto number = static_cast<double>(step);
  return {.step = step,
          .loss = 10 - number,
          .grad_norm = number,
          .loss_scale = optim::LossScaleState{.scale = 512 * number, .left_out = number}};
}

struct RunReporterTest : testing::Test {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("run_reporter_test." + std::to_string(getpid()));
  TrainOptions options;

  RunReporterTest() {
    options.steps = kSteps;
    options.model.config = model::preset("gpt2-tiny");
  }
  ~RunReporterTest() override { std::filesystem::remove_all(folder); }

  // late(step): its numbers come with the next one.
  template <typename Late>
  std::vector<StepMetrics> lines_of(const std::string& name, const Late& late) {
    options.run_dir = folder / name;
    std::filesystem::create_directories(options.run_dir);
    TrainingState state{.samples_per_step = 8};
    RunReporter reporter(options, {}, Mfu(options.model.config, 32, {}), state, {});
    for (std::int64_t step = 1; step <= kSteps; ++step) {
      StepOutcome outcome{.lr = 0.1 * static_cast<double>(step),
                          .epoch = static_cast<std::uint64_t>(step / 3),
                          .step_ns = step * 1'000'000};
      if (step > 1 && late(step - 1)) outcome.numbers.push_back(numbers_of(step - 1));
      if (!late(step)) outcome.numbers.push_back(numbers_of(step));
      state.step = step;
      for (const StepNumbers& numbers : outcome.numbers) reporter.numbers(numbers);
      reporter.step(state, outcome, step == kEvaluated ? std::optional(3.5) : std::nullopt);
    }
    reporter.finish(core::ExitCode::kDone, state);
    return read_metrics(options.run_dir / "metrics.jsonl");
  }
};

// All of a line that is no property of the machine.
StepMetrics without_clock(StepMetrics line) {
  line.memory_bytes = {};
  line.eta_s = {};
  return line;
}

TEST_F(RunReporterTest, late_lines_are_complete_and_in_order) {
  for (const std::int64_t every : {1, 3}) {
    options.log_every = every;
    const auto prompt = lines_of("prompt" + std::to_string(every), [](auto) { return false; });
    const auto late = lines_of("late" + std::to_string(every), [](std::int64_t step) {
      return step != kEvaluated && step != kSteps;
    });

    ASSERT_EQ(prompt.size(), every == 1 ? 6u : 3u);  // of three with the evaluation
    ASSERT_EQ(late.size(), prompt.size());
    for (std::size_t i = 0; i < late.size(); ++i) {
      EXPECT_EQ(late[i].loss, 10 - static_cast<double>(late[i].step));
      EXPECT_EQ(without_clock(late[i]), without_clock(prompt[i])) << i;
    }
  }
}

// Steps that an anomaly has taken back took their time on the way to the target.
TEST_F(RunReporterTest, time_to_the_target_has_the_steps_that_were_taken_back) {
  options.run_dir = folder / "target";
  options.evaluation.target_val_loss = 3.5;
  std::filesystem::create_directories(options.run_dir);
  const TrainingState state{.step = 4, .training_s = 8, .rolled_back_s = 0.5};
  RunReporter reporter(options, {}, Mfu(options.model.config, 32, {}), state, {});

  reporter.target_reached(state, 3.4);
  reporter.finish(core::ExitCode::kDone, state);

  EXPECT_EQ(read_run_record(options.run_dir / "run.json").time_to_target_s, 8.5);
}

}  // namespace
}  // namespace sidestream::launch
