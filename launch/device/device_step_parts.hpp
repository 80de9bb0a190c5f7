// What steps on a GPU work with, captured or not; all outlive them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "comm/communicator.hpp"
#include "comm/cuda/driver.hpp"
#include "launch/device/device_feed.hpp"
#include "launch/device/graph_engine.hpp"
#include "launch/trainer/dropout_seed.hpp"
#include "launch/trainer/step_runner.hpp"
#include "model/language_model.hpp"
#include "parallel/data_parallel.hpp"

namespace sidestream::launch {

struct DeviceStepParts {
  model::LanguageModel& model;
  parallel::DataParallel& replicas;
  DeviceFeed& feed;
  comm::Communicator& communicator;
  std::shared_ptr<comm::cuda::Driver> driver;
  parallel::CurrentStream current_stream;

  bool drops_out() const { return model.config().dropout > 0; }
};

// For steps that are captured and replayed.
struct GraphParts {
  std::unique_ptr<GraphEngine> engine = {};  // null: every step is queued
  // Why a step is not to be replayed; an empty text: it may be.
  std::function<std::string(std::int64_t step)> eager_because = {};
};

// Of the dropout of one micro-step on this rank.
inline std::uint64_t seed_of(const StepRunnerConfig& config, const comm::Communicator& communicator,
                             std::int64_t step, int micro_step) {
  return dropout_seed(config.seed,
                      {.step = step, .micro_step = micro_step, .rank = communicator.rank()});
}

}  // namespace sidestream::launch
