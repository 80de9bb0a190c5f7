// The steps of a run and the memory of their batches, for the processor or for a GPU.
#pragma once

#include <memory>

#include "comm/communicator.hpp"
#include "core/data/loader.hpp"
#include "launch/assembly/data_assembly.hpp"
#include "launch/device/device_session.hpp"
#include "launch/device/look.hpp"
#include "launch/options/train_options.hpp"
#include "launch/trainer/step_runner.hpp"
#include "launch/trainer/stepper.hpp"
#include "model/language_model.hpp"
#include "parallel/data_parallel.hpp"

namespace sidestream::launch {

// What steps work with; all outlive them.
struct StepperParts {
  model::LanguageModel& model;
  parallel::DataParallel& replicas;
  data::Loader& loader;
  comm::Communicator& communicator;
  std::int64_t first_step = 1;  // of this start of the run
};

std::unique_ptr<Stepper> make_stepper(const StepperParts& parts, const StepRunnerConfig& config,
                                      const TrainOptions& options, const DeviceSession& device);

// On a GPU with --pin-memory: pinned, and room for the batches that are being copied.
LoaderMemory loader_memory(const TrainOptions& options, const DeviceSession& device);

// Pinned memory of batches; `driver` lives with it. Throws MemoryError, which names --pin-memory.
data::SlotAllocator pinned_slots(std::shared_ptr<comm::cuda::Driver> driver);

// Who wants to see the numbers of this step: at once for an evaluation, a checkpoint and the end,
// later for a line.
Look look_at(const TrainOptions& options, std::int64_t step);

}  // namespace sidestream::launch
