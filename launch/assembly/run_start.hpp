// Where a run starts: the checkpoint that --resume means, and the run directory that it owns.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/checkpoint_store.hpp"
#include "core/checkpoint/run_directory.hpp"
#include "core/data/fingerprint.hpp"
#include "launch/options/train_options.hpp"
#include "launch/process/program.hpp"

namespace sidestream::launch {

// agree() for set-up, which reads whole checkpoints and indexes: with its own deadline.
void agree_on_setup(Session& session, const TrainOptions& options,
                    const std::function<void()>& work);

// Of a start that follows a failed one: until the one before has let go of the run directory, for
// it may finish a checkpoint until then. Collective. Throws AgreedError.
void wait_for_start_before(Session& session, const TrainOptions& options);

// The steps whose checkpoints --run-dir holds, for rank 0 and --resume auto; before it looks for
// the newest. Collective. Throws AgreedError.
std::vector<std::int64_t> saved_steps(Session& session, const TrainOptions& options);

// Nothing for a fresh run. Collective: rank 0 looks, the others verify what it found. `notes` get
// what was skipped and why. Throws AgreedError.
std::optional<checkpoint::Checkpoint> checkpoint_to_resume(Session& session,
                                                           const TrainOptions& options,
                                                           std::vector<std::string>& notes);

// Whether the run of --run-dir has ended and has trained all steps that are asked for, or reached
// --target-val-loss: then what it says of itself is to stay. Collective. Throws AgreedError.
bool has_nothing_left(Session& session, const TrainOptions& options,
                      const std::optional<checkpoint::Checkpoint>& resume_from);

// For rank 0, before run.json is written anew: whether the tokens are those of the run that made
// the checkpoint.
void note_other_data(const TrainOptions& options, const data::Fingerprints& data,
                     const checkpoint::Checkpoint& resume_from, std::vector<std::string>& notes);

// Refuses what does not fit the model, before the run directory is touched. The folder of --init's
// weights, empty where the run does not start from them; `notes` get what was skipped where that is
// a run directory. Collective. Throws AgreedError.
std::filesystem::path check_start(Session& session, const TrainOptions& options,
                                  const std::optional<checkpoint::Checkpoint>& resume_from,
                                  std::vector<std::string>& notes);

// Rank 0 owns the run directory and its lock; the others get nothing. `notes` get what is set
// otherwise than in the run so far. `saved`: saved_steps() of before; a run that has ended since
// may have saved more. Collective. Throws AgreedError.
std::unique_ptr<checkpoint::RunDirectory> claim_run_directory(
    Session& session, const TrainOptions& options,
    const std::optional<checkpoint::Checkpoint>& resume_from,
    const std::vector<std::int64_t>& saved, std::vector<std::string>& notes);

// For rank 0, before it writes what has to be in the run directory: RunDirectory::hold(), with the
// configuration where the folder had to be made again. Does nothing on ranks without a directory.
std::function<void()> make_hold(std::shared_ptr<checkpoint::RunDirectory> directory,
                                const TrainOptions& options);

}  // namespace sidestream::launch
