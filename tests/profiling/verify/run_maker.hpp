// Runs as a trainer leaves them, and run directories on disk.
#pragma once

#include <cmath>
#include <fstream>
#include <string>

#include "profiling/verify/recorded_run.hpp"

namespace sidestream::verify {

struct RunShape {
  double step_ms = 100;
  double reader_ms = 5;
  double exposed_ms = 10;
  double loss_offset = 0;  // added to every loss
  int seed = 1;
  int steps = 20;
  std::int64_t memory_bytes = 1'000'000;
  bool evaluated = true;
};

// The loss falls; another seed shifts it by up to a tenth.
inline RecordedRun make_run(const RunShape& shape) {
  RecordedRun run{.folder = "run",
                  .config = {{"model", "gpt2-mini"}, {"seed", std::to_string(shape.seed)}},
                  .environment = {{"world_size", "2"}, {"processor", "one"}},
                  .version = "1"};
  run.exposed_comm_ms = shape.exposed_ms;
  run.exit_code = 0;
  const double of_seed = 0.05 * std::sin(shape.seed * 2.0);
  for (int step = 1; step <= shape.steps; ++step) {
    const bool warm = step > 3;
    run.steps.push_back({.step = step,
                         .loss = 4.0 + 5.0 / step + of_seed + shape.loss_offset,
                         .step_ms = warm ? shape.step_ms : 10 * shape.step_ms,
                         .reader_ms = warm ? shape.reader_ms : 10 * shape.reader_ms,
                         .memory_bytes = shape.memory_bytes * step / shape.steps});
  }
  if (shape.evaluated) run.steps.back().val_loss = 4.2 + of_seed + shape.loss_offset;
  return run;
}

inline void write_file(const std::filesystem::path& file, const std::string& text) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

}  // namespace sidestream::verify
