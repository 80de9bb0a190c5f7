// Checkpoints of a module and a training loop of one's own, as safe as the trainer's: each is there
// as a whole or not at all, whatever is killed when, and any number of ranks goes on from what any
// other number wrote.
//
//   launch::ModuleCheckpoint checkpoint("runs/mine", session.communicator(), model, replicas);
//   checkpoint.restore();                          // goes on where the last start has saved
//   for (std::int64_t step = replicas.steps_taken() + 1; step <= steps; ++step) {
//     ...
//     if (step % 100 == 0) checkpoint.save();
//   }
//
// Kept are parameters with their optimizer's state, parameters without gradient and buffers, the
// loss scale, the number of steps, and what the program adds in JSON: where its data stands, say.
// Random numbers are the program's: seed them by step and rank, and a run of as many ranks that was
// interrupted has the bits of one that was not. launch/supervise --program starts such a program
// again after a failure.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "comm/communicator.hpp"
#include "launch/watch/heartbeat.hpp"
#include "parallel/data_parallel.hpp"

namespace sidestream::launch {

struct ModuleCheckpointOptions {
  int keep = 2;                                                  // the newest ones; 0: all
  std::chrono::milliseconds deadline{std::chrono::minutes(10)};  // of a save or restore
  // ProgramGuard::heartbeat() of a program that has one: the guard's limit does not count saves.
  std::shared_ptr<Heartbeat> heartbeat = std::make_shared<Heartbeat>();
};

class ModuleCheckpoint {
 public:
  // Collective. Rank 0 makes the folder, which all nodes share, and holds its lock until the end of
  // this: checkpoints lie in FOLDER/checkpoints/step_00000100. It should be of this run alone: a
  // run directory's other names (config.cfg, metrics.jsonl, trace/, ...) must not be links in it.
  // A start after a failed one (launch/supervise) waits for the lock that the one before has left
  // on a network file system. Communicator, module and replicas outlive this. Throws AgreedError
  // where the folder cannot be written, another process has it or ranks name different ones, for
  // names that are taken twice, and for a buffer of a type that files do not have.
  ModuleCheckpoint(const std::filesystem::path& folder, comm::Communicator& communicator,
                   const torch::nn::Module& module, parallel::DataParallel& replicas,
                   const ModuleCheckpointOptions& options = {});
  ~ModuleCheckpoint();
  ModuleCheckpoint(const ModuleCheckpoint&) = delete;
  ModuleCheckpoint& operator=(const ModuleCheckpoint&) = delete;

  // Collective, between two steps, as a rule before the first: goes on from the newest checkpoint
  // that is whole, and returns what its save() was given; empty: there is none. steps_taken() of
  // the replicas says where it stands. Newer ones, which are damaged, are named on stderr and set
  // aside. Throws AgreedError for a checkpoint of other parameters, another optimizer or one that
  // keeps other moments, for one of updates that a loss scale has left out where none is
  // configured, and where there are checkpoints and none is whole; Error inside of a step.
  std::optional<nlohmann::json> restore();

  // Collective, between two steps: returns when the checkpoint is on disk and has its name, and
  // older ones are gone. `program`: rank 0's counts, at most 30 levels deep and 8 MiB of text.
  // Buffers become those of rank 0 on all ranks, so that what goes on is what would be restored.
  // Throws AgreedError, and the checkpoints before are as they were: for what the system refuses,
  // for values that are not finite (of buffers: not numbers), on a device also once
  // first_bad_step() is there, and in a folder that has checkpoints which nobody has restored;
  // Error inside of a step.
  void save(const nlohmann::json& program = {});

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sidestream::launch
