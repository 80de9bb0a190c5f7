// The folder with a run's checkpoints: step_00000100/{model.safetensors, ..., manifest.json}.
//
// Saving, with any number of ranks; who says "barrier" and "gather" is the caller:
//   rank 0:  store.begin(step);                          barrier
//   all:     CheckpointWriter writer(store.pending_folder(step));
//            writer.add_safetensors("optimizer_00001_of_00004.safetensors", tensors);
//            text = digests_to_text(writer.files());     gather to rank 0 (this is also the barrier
//            before commit)
//   rank 0:  store.commit(manifest);  store.prune(keep, step);
// A rank that fails: all ranks agree, rank 0 calls store.abandon(step). A folder carries its final
// name only when it is complete and durable; a kill at any moment leaves the older checkpoints as
// they were.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/manifest.hpp"
#include "core/checkpoint/verify.hpp"

namespace sidestream::checkpoint {

struct Checkpoint {
  std::filesystem::path folder;
  Manifest manifest;
};

struct SkippedCheckpoint {
  std::filesystem::path folder;
  std::string reason;
};

struct NewestCheckpoint {
  std::optional<Checkpoint> checkpoint;    // empty: none is valid
  std::vector<SkippedCheckpoint> skipped;  // newer ones that did not verify, newest first
};

// Halves of saves and removals: every checkpoint keeps the name by which it was found.
enum class Leftovers { kAll, kHalves };

class CheckpointStore {
 public:
  using Warn = std::function<void(const std::string&)>;

  // Does not touch the disk; begin() creates the folder.
  explicit CheckpointStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const noexcept { return folder_; }
  std::filesystem::path final_folder(std::int64_t step) const;
  std::filesystem::path pending_folder(std::int64_t step) const;

  // Rank 0, at start and under the run directory's lock: removes what runs that died left
  // half-written, and finishes what they had begun. Returns the number of folders that are gone;
  // `warn` hears of those that cannot be removed. Throws CheckpointError.
  std::size_t remove_leftovers(const Warn& warn = {}, Leftovers which = Leftovers::kAll) const;

  // Rank 0: makes the empty folder for a save. Throws CheckpointError with the system's text.
  void begin(std::int64_t step) const;

  // Rank 0, after all ranks have written: writes the manifest, syncs, gives the folder its final
  // name. A checkpoint of the same step is replaced, a file of that name set aside, and `warn`
  // hears of it. Throws CheckpointError; the pending folder is then removed and nothing else has
  // changed. Where only the last sync fails, of the folder of all checkpoints, it keeps its final
  // name: a loss of power may take that away again.
  void commit(const Manifest& manifest, const Warn& warn = {}) const;

  // Rank 0: gives up a save. Never throws: what cannot be removed is removed at the next start.
  void abandon(std::int64_t step) const noexcept;

  // Rank 0: removes all but the newest `keep` complete checkpoints (0 keeps all) of steps up to
  // `newest`, the one just committed, and only if that one verifies. Returns what was removed;
  // `warn` hears of what cannot be, and where `newest` cannot be read at the moment. Throws
  // CheckpointError for one that is damaged.
  std::vector<std::filesystem::path> prune(int keep, std::int64_t newest,
                                           const Warn& warn = {}) const;

  // Rank 0, when a run goes on from `step`: checkpoints of later steps are renamed, so that nothing
  // takes them for ones of the run that goes on now. Returns the new names. Throws CheckpointError.
  std::vector<std::filesystem::path> set_aside_after(std::int64_t step) const;

  // The newest checkpoint that verifies, of a step up to the limit. Throws NewerFormatError when a
  // newer version wrote one that would have been used.
  NewestCheckpoint newest_valid(std::optional<std::int64_t> step_limit = {}) const;

  // Steps of all folders with a final name, ascending. Not verified.
  std::vector<std::int64_t> steps() const;

 private:
  // Newest first, with links.
  std::vector<std::filesystem::path> complete_folders(std::optional<std::int64_t> step_limit) const;

  std::filesystem::path folder_;
};

// One checkpoint by the path of its folder, verified. Throws CheckpointError.
Checkpoint open_checkpoint(const std::filesystem::path& folder,
                           VerifyDepth depth = VerifyDepth::kHashes);

}  // namespace sidestream::checkpoint
