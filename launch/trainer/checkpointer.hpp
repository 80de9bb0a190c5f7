// Saves and restores a training run, all ranks together.
//
// Rank 0 writes model.safetensors (weights and constants of the model) and what else the model
// adds; the optimizer's tensors are shared out over the ranks. A failure on any rank is agreed: all
// ranks throw, the older checkpoints stay.
//
// A save in the middle of training holds it up while tensors are copied; a thread of each rank then
// writes the copy, and one of rank 0 gives the whole its name. Ranks agree between the two, at
// steps that they agree on anyway:
//   checkpointer.save(state);                       // collective: copies, and starts to write
//   each step: vote = checkpointer.stage_done();    // of this rank; costs nothing
//   when all say so: saved = checkpointer.advance();  // collective
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.hpp"
#include "core/checkpoint/checkpoint_store.hpp"
#include "core/checkpoint/tensor_set.hpp"
#include "core/faults/fault_injector.hpp"
#include "launch/trainer/checkpoint_tensors.hpp"
#include "launch/trainer/checkpointed_model.hpp"
#include "launch/trainer/training_state.hpp"
#include "launch/watch/background_task.hpp"
#include "launch/watch/heartbeat.hpp"
#include "parallel/data_parallel.hpp"

namespace sidestream::launch {

enum class SaveMode { kBlocking, kAsynchronous };
// What training does while a save is written: after the last step it waits.
enum class Meanwhile { kTraining, kWaiting };

struct CheckpointerConfig {
  std::filesystem::path folder = {};  // of the checkpoints
  std::function<void()> hold_folder =
      {};        // before each save, on all ranks; its errors are the save's
  int keep = 2;  // 0: all
  std::shared_ptr<const CheckpointedModel> model = {};           // not null
  std::chrono::milliseconds deadline{std::chrono::minutes(10)};  // of a save or restore
  std::string_view deadline_flag = "--timeout-checkpoint";       // what sets it, for messages
  SaveMode mode = SaveMode::kBlocking;
  std::shared_ptr<faults::FaultInjector> faults = std::make_shared<faults::FaultInjector>();
  std::shared_ptr<Heartbeat> heartbeat = std::make_shared<Heartbeat>();  // of the writing
};

// A checkpoint that is durable and has its name.
struct SavedCheckpoint {
  TrainingState state;
  double stall_s = 0;  // that this rank's training has waited for it
  // From the call of save() until the next one can begin: it has its name by then, was read back,
  // and older ones are removed.
  double total_s = 0;
};

class Checkpointer {
 public:
  Checkpointer(const CheckpointerConfig& config, comm::Communicator& communicator,
               parallel::DataParallel& replicas);

  // Before the first save that training should not wait for: the memory for its copy is made beside
  // training. Does not block.
  void prepare();

  // Collective. Finishes an earlier save first. On return the tensors may change; blocking, or
  // where training waits, the checkpoint is there, and nothing was copied on the host. What is
  // returned has been saved meanwhile. Throws AgreedError.
  std::vector<SavedCheckpoint> save(const TrainingState& state,
                                    Meanwhile meanwhile = Meanwhile::kTraining);

  // A save is under way and this rank has done what it can do alone. Does not block.
  bool stage_done() const noexcept { return stage_ != Stage::kNone && task_.done(); }
  // Collective, once every rank's stage is done. Nothing while there is more to do. Throws
  // AgreedError.
  std::optional<SavedCheckpoint> advance();
  // Collective: waits for the end of a save that is under way. Throws AgreedError.
  std::optional<SavedCheckpoint> finish();
  // Of a run that has failed, on this rank alone: what is still being written is left behind, so
  // that nobody waits for it before the failure is told.
  void leave_save() noexcept;

  // Collective. Loads weights, moments and state from the checkpoint. Throws AgreedError; with
  // another model the message lists the fields. In the middle of a run buckets stay as they are.
  // `notes` get a line where moments were kept in another type than they have now.
  enum class Buckets { kFromCheckpoint, kAsTheyAre };
  TrainingState restore(const checkpoint::Checkpoint& checkpoint, std::vector<std::string>& notes,
                        Buckets buckets = Buckets::kFromCheckpoint) const;

  // Collective. Weights only, from a checkpoint of ours or another folder that the model reads.
  // Throws AgreedError.
  void load_weights(const std::filesystem::path& folder) const;

 private:
  enum class Stage { kNone, kWriting, kCommitting };
  // What a thread works on; it may outlive the checkpointer.
  struct Job;

  void agree_in_time(const std::function<void()>& work) const;
  void restore_loss_scale(TrainingState& state) const;
  void note_type_of_moments(const checkpoint::TensorSet& files,
                            std::vector<std::string>& notes) const;
  void agree_or_abandon(const std::function<void()>& work);
  std::vector<NamedTensor> moments_of_this_rank(const std::vector<parallel::ParameterState>& states,
                                                const std::vector<NamedTensor>& weights) const;
  void take_snapshot(Job& job, Meanwhile meanwhile) const;
  void gather_snapshot(const Job& job) const;
  void load(const checkpoint::TensorSet& weights, const checkpoint::TensorSet* moments) const;
  void load_slices(const checkpoint::TensorSet& weights,
                   const checkpoint::TensorSet* moments) const;
  void clear_moments() const;
  void start_commit();

  CheckpointerConfig config_;
  checkpoint::CheckpointStore store_;
  comm::Communicator& communicator_;
  parallel::DataParallel& replicas_;
  std::shared_ptr<Job> job_;  // the last one: its memory is used again
  Stage stage_ = Stage::kNone;
  BackgroundTask task_;  // last: uses the job
};

}  // namespace sidestream::launch
