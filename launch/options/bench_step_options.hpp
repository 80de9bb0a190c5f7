// What `sidestream bench step` can be told: flags of `train`, and a few of its own.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "launch/options/flag.hpp"
#include "launch/options/train_options.hpp"

namespace sidestream::launch {

struct StepBenchOptions {
  int warm_up = 5;                        // steps at the start that do not count
  bool keeps_run = false;                 // --run-dir was given: the run stays there
  std::vector<std::string> remarks = {};  // of the file: what is not taken over, and why
  TrainOptions train = {};                // synthetic data unless something else was asked for
};

// `arguments`: what follows the word. Throws ConfigError, also for flags of `train` that the
// measurement sets itself.
StepBenchOptions parse_step_bench_options(const std::vector<std::string>& arguments);

// Those that `train` does not have.
FlagGroup step_bench_flags();

}  // namespace sidestream::launch
