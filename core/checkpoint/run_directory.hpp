// The folder of a run: where everything lies, and who may write there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/file.hpp"

namespace sidestream::checkpoint {

// Names inside a run directory; every rank may compute them, nothing is created.
class RunPaths {
 public:
  explicit RunPaths(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const noexcept { return root_; }
  std::filesystem::path config() const { return root_ / "config.cfg"; }
  std::filesystem::path run_json() const { return root_ / "run.json"; }
  std::filesystem::path metrics() const { return root_ / "metrics.jsonl"; }
  std::filesystem::path lock() const { return root_ / "lock"; }
  std::filesystem::path checkpoints() const { return root_ / "checkpoints"; }
  std::filesystem::path ettr() const { return root_ / "ettr.jsonl"; }
  std::filesystem::path incidents() const { return root_ / "incidents.jsonl"; }
  std::filesystem::path flight() const { return root_ / "flight"; }
  std::filesystem::path report() const { return root_ / "report"; }
  std::filesystem::path traces() const { return root_ / "trace"; }

 private:
  std::filesystem::path root_;
};

// A small file written, synced and removed: permissions, read-only mounts and full disks show
// before any work is done. Throws ConfigError with the system's text, which begins with `called`.
void probe_writing(const std::filesystem::path& folder, std::string_view called = "--run-dir");

// What to do with a folder that a run has written to already.
enum class UsedRun { kRefuse, kContinue };

// A run directory that this process (rank 0) owns: created, probed for writing, and locked until
// destruction.
class RunDirectory {
 public:
  using MakeRoom = std::function<void(const RunPaths& paths)>;

  // Throws ConfigError when it cannot be created or written (the system's text), something that
  // it writes into is a link, another process holds the lock (its text), or it has been used and
  // `used` is kRefuse (the message names --resume auto). `called`: what people choose the folder
  // by, as messages begin with it. `make_room`: removes what an earlier run has left unfinished,
  // which on a full disk may be all that stands in the way; with the lock, before anything new is
  // written.
  RunDirectory(const std::filesystem::path& root, UsedRun used,
               std::string_view called = "--run-dir", const MakeRoom& make_room = {});

  const RunPaths& paths() const noexcept { return paths_; }

  // Before a save: folders vanish, removed by hand or with a file system that is unmounted. They
  // are made and locked again, and what people should know is returned; nothing where all is as it
  // was. Throws CheckpointError when another run's folder stands in the place of this one, or
  // another run has taken it.
  std::optional<std::string> hold();

  // True when a run has left a configuration, metrics or checkpoints in the folder.
  static bool is_used(const RunPaths& paths);

 private:
  void claim(UsedRun used, const MakeRoom& make_room);
  void make_checkpoints_folder();
  void hold_lock();

  RunPaths paths_;
  std::string called_;
  std::string lock_text_;
  core::UniqueFd lock_;
  core::UniqueFd root_;  // open, so that no other folder gets their numbers
  core::UniqueFd checkpoints_;
};

}  // namespace sidestream::checkpoint
