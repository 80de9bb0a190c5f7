#include "core/checkpoint/checkpoint_store.hpp"

#include <fmt/format.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <functional>
#include <map>
#include <thread>

#include "core/base/error.hpp"
#include "core/base/json_fault.hpp"
#include "core/base/replace_folder.hpp"
#include "core/base/write_error.hpp"
#include "core/checkpoint/newer_format_error.hpp"
#include "core/checkpoint/unreadable_error.hpp"

namespace sidestream::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step_";
constexpr std::string_view kPendingSuffix = ".pending";    // a save that has not been committed
constexpr std::string_view kTrashSuffix = ".trash";        // a checkpoint that is being removed
constexpr std::string_view kReplacedSuffix = ".replaced";  // another is getting its name
constexpr std::string_view kAsideSuffix = ".set-aside";  // of steps that a resumed run takes again
constexpr std::chrono::milliseconds kBetweenAttempts{500};  // to read a checkpoint

std::string folder_name(std::int64_t step) {
  if (step < 0)
    throw core::CheckpointError(fmt::format("checkpoint: expected a step from 0, found {}", step));
  return fmt::format("step_{:08}", step);
}

// The step of "step_00000100"; empty for any other name.
std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::string_view whole = name;
  name.remove_prefix(kPrefix.size());
  std::int64_t step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  // "step_000000100" is a name of somebody's own: what is read under the step's name lies
  // elsewhere.
  return folder_name(step) == whole ? std::optional(step) : std::nullopt;
}

bool is_leftover(std::string_view name, Leftovers which) {
  return name.starts_with(kPrefix) &&
         (name.ends_with(kPendingSuffix) || name.ends_with(kTrashSuffix) ||
          (which == Leftovers::kAll && name.ends_with(kReplacedSuffix)));
}

// Turns the errors of the standard library and of core/base into the class of this folder.
template <typename Action>
auto as_checkpoint_error(Action action) {
  try {
    return action();
  } catch (const fs::filesystem_error& error) {
    throw core::CheckpointError("checkpoint: " + core::filesystem_words(error));
  } catch (const nlohmann::json::exception& error) {
    throw core::CheckpointError(
        fmt::format("checkpoint: a value does not fit JSON: {}", core::json_words(error)));
  } catch (const core::CheckpointError&) {
    throw;
  } catch (const core::Error& error) {
    throw core::CheckpointError(error.what());
  }
}

std::vector<fs::path> entries_in(const fs::path& folder, fs::file_type type) {
  std::vector<fs::path> found;
  if (!fs::exists(folder)) return found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.symlink_status().type() == type) found.push_back(entry.path());
  }
  return found;
}

std::vector<fs::path> folders_in(const fs::path& folder) {
  return entries_in(folder, fs::file_type::directory);
}

bool is_link(const fs::path& path) {
  std::error_code ignored;
  return fs::is_symlink(path, ignored);
}

void rename_or_throw(const fs::path& from, const fs::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) {
    throw core::CheckpointError(
        core::system_error_text("cannot rename " + from.string() + " to", to, errno));
  }
}

fs::path trash_name(const fs::path& folder) { return folder.string() + std::string(kTrashSuffix); }

// `name`, or with a number behind it when that is taken.
fs::path free_name(const std::string& name) {
  fs::path free = name;
  for (int number = 2; core::is_there(free); ++number) free = fmt::format("{}-{}", name, number);
  return free;
}

fs::path aside_name(const fs::path& path) {
  return free_name(path.string() + std::string(kAsideSuffix));
}

// A file under the name of a checkpoint is somebody's, whatever it is.
void set_file_aside(const fs::path& path, const CheckpointStore::Warn& warn) {
  if (!fs::is_regular_file(fs::symlink_status(path))) return;
  const fs::path aside = aside_name(path);
  rename_or_throw(path, aside);
  if (warn)
    warn(
        fmt::format("{} is a file and no checkpoint: it is now {}", path.string(), aside.string()));
}

// Renamed first, so that a kill in the middle leaves no half-empty folder with a final name.
void remove_checkpoint(const fs::path& folder) {
  const fs::path trash = trash_name(folder);
  fs::remove_all(trash);
  rename_or_throw(folder, trash);
  fs::remove_all(trash);
}

// What cannot be removed (an open file on NFS, somebody else's folder) takes up room, and no more.
bool removed(const fs::path& folder, const CheckpointStore::Warn& warn,
             const std::function<void(const fs::path&)>& remove) {
  try {
    remove(folder);
    return true;
  } catch (const std::exception& error) {
    if (warn)
      warn(
          fmt::format("{} cannot be removed and takes up room: {}", folder.string(), error.what()));
    return false;
  }
}

// Throws CheckpointError for one that is damaged. False: it cannot be read at the moment; it has
// its name and is as good as its file system, but what is older stays until one is known to be
// whole.
bool is_whole_now(const fs::path& folder, const CheckpointStore::Warn& warn) {
  try {
    verify_checkpoint(folder, VerifyDepth::kHashes);
    return true;
  } catch (const UnreadableError& error) {
    if (warn)
      warn(fmt::format("checkpoint {} cannot be read back now, and no older one is removed: {}",
                       folder.string(), error.what()));
    return false;
  }
}

// Where the checkpoint with this final name lies until its replacement has the name.
fs::path replaced_name(const fs::path& folder) {
  return folder.string() + std::string(kReplacedSuffix);
}

// Ascending, of the folders (or links) that are called step_NNNNNNNN and the suffix.
std::vector<std::int64_t> steps_in(const fs::path& folder, std::string_view suffix,
                                   fs::file_type type = fs::file_type::directory) {
  std::vector<std::int64_t> found;
  for (const fs::path& one : entries_in(folder, type)) {
    std::string name = one.filename().string();
    if (!name.ends_with(suffix)) continue;
    name.resize(name.size() - suffix.size());
    if (const auto step = step_of(name)) found.push_back(*step);
  }
  std::sort(found.begin(), found.end());
  return found;
}

// To a checkpoint whose replacement has not come. False: it is no such one.
bool give_name_back(const fs::path& folder) {
  const std::string name = folder.string();
  if (!name.ends_with(kReplacedSuffix)) return false;
  const fs::path final_folder = name.substr(0, name.size() - kReplacedSuffix.size());
  if (fs::exists(final_folder)) return false;
  rename_or_throw(folder, final_folder);
  core::sync_folder(final_folder.parent_path());
  return true;
}

// Gives the pending folder its final name; what had that name before ends under the pending one and
// is removed.
void replace(const fs::path& pending, const fs::path& final_folder) {
  if (core::exchange_names(pending, final_folder)) {
    core::sync_folder(final_folder.parent_path());
    std::error_code ignored;  // the new one is there; remove_leftovers() tries again, and says why
    fs::remove_all(pending, ignored);
    return;
  }
  // A kill in between leaves it under a name that newest_valid() knows and remove_leftovers() gives
  // back.
  core::replace_in_two_steps(pending, final_folder, replaced_name(final_folder));
}

void write_manifest(const fs::path& pending, const Manifest& manifest) {
  HashedFile file(pending / kManifestFile);
  file.write(manifest_text(manifest));
  file.finish();
  core::sync_folder(pending);
}

// A network file system that has just changed servers refuses for a moment.
Checkpoint open_patiently(const fs::path& folder) {
  constexpr int kAttempts = 4;
  for (int attempt = 1; attempt < kAttempts; ++attempt) {
    try {
      return open_checkpoint(folder);
    } catch (const UnreadableError&) {
      std::this_thread::sleep_for(kBetweenAttempts);
    }
  }
  return open_checkpoint(folder);
}

}  // namespace

fs::path CheckpointStore::final_folder(std::int64_t step) const {
  return folder_ / folder_name(step);
}

fs::path CheckpointStore::pending_folder(std::int64_t step) const {
  return folder_ / (folder_name(step) + std::string(kPendingSuffix));
}

std::size_t CheckpointStore::remove_leftovers(const Warn& warn, Leftovers which) const {
  return as_checkpoint_error([&] {
    std::size_t count = 0;
    for (const fs::path& folder : folders_in(folder_)) {
      if (!is_leftover(folder.filename().string(), which) || give_name_back(folder)) continue;
      count += removed(folder, warn, [](const fs::path& one) { fs::remove_all(one); });
    }
    return count;
  });
}

void CheckpointStore::begin(std::int64_t step) const {
  as_checkpoint_error([&] {
    const fs::path pending = pending_folder(step);
    fs::remove_all(pending);
    fs::create_directories(pending);
  });
}

void CheckpointStore::commit(const Manifest& manifest, const Warn& warn) const {
  const fs::path pending = pending_folder(manifest.step);
  const fs::path target = final_folder(manifest.step);
  try {
    as_checkpoint_error([&] {
      write_manifest(pending, manifest);
      verify_checkpoint(pending, VerifyDepth::kSizes);
      set_file_aside(target, warn);
      if (fs::exists(target) || is_link(target)) {
        replace(pending, target);
      } else {
        rename_or_throw(pending, target);
      }
      core::sync_folder(folder_);
    });
  } catch (...) {
    abandon(manifest.step);
    throw;
  }
}

void CheckpointStore::abandon(std::int64_t step) const noexcept {
  try {
    fs::remove_all(pending_folder(step));
  } catch (...) {
    // remove_leftovers() of the next start tries again
  }
}

std::vector<fs::path> CheckpointStore::prune(int keep, std::int64_t newest,
                                             const Warn& warn) const {
  if (keep <= 0) return {};
  return as_checkpoint_error([&] {
    std::vector<fs::path> gone;
    if (!is_whole_now(final_folder(newest), warn)) return gone;
    std::vector<std::int64_t> all = steps();
    std::reverse(all.begin(), all.end());
    int complete = 0;
    for (const std::int64_t step : all) {
      if (step > newest) continue;
      const fs::path folder = final_folder(step);
      if (complete >= keep) {
        if (removed(folder, warn, remove_checkpoint)) gone.push_back(folder);
        continue;
      }
      // A damaged one does not count, and is left for whoever wants to look at it.
      try {
        verify_checkpoint(folder, VerifyDepth::kSizes);
        ++complete;
      } catch (const core::CheckpointError&) {
      }
    }
    return gone;
  });
}

std::vector<fs::path> CheckpointStore::set_aside_after(std::int64_t step) const {
  return as_checkpoint_error([&] {
    std::vector<fs::path> moved;
    std::vector<std::int64_t> all = steps();
    const auto links = steps_in(folder_, "", fs::file_type::symlink);
    all.insert(all.end(), links.begin(), links.end());
    for (const std::int64_t newer : all) {
      if (newer <= step) continue;
      moved.push_back(aside_name(final_folder(newer)));
      rename_or_throw(final_folder(newer), moved.back());
    }
    if (!moved.empty()) core::sync_folder(folder_);
    return moved;
  });
}

NewestCheckpoint CheckpointStore::newest_valid(std::optional<std::int64_t> step_limit) const {
  NewestCheckpoint newest;
  for (const fs::path& folder : complete_folders(step_limit)) {
    if (is_link(folder)) {
      newest.skipped.push_back(
          {.folder = folder,
           .reason = folder.string() +
                     " is a link, which a run does not follow: move the folder itself here"});
      continue;
    }
    try {
      newest.checkpoint = open_patiently(folder);
      return newest;
    } catch (const NewerFormatError&) {
      throw;
    } catch (const UnreadableError& error) {
      throw UnreadableError(
          fmt::format("{}. Checkpoint {} may be whole, so none that is older is taken in its "
                      "place: give access "
                      "to it and start again, or move it away to go on from the one before",
                      error.what(), folder.string()));
    } catch (const core::CheckpointError& error) {
      newest.skipped.push_back({.folder = folder, .reason = error.what()});
    }
  }
  return newest;
}

std::vector<std::int64_t> CheckpointStore::steps() const {
  return as_checkpoint_error([&] { return steps_in(folder_, ""); });
}

// A kill in the middle of replace_in_two_steps() leaves one that has no final name. Links are among
// them, so that somebody says that they are not followed.
std::vector<fs::path> CheckpointStore::complete_folders(
    std::optional<std::int64_t> step_limit) const {
  return as_checkpoint_error([&] {
    std::map<std::int64_t, fs::path, std::greater<>> by_step;
    for (const std::int64_t step : steps_in(folder_, "")) by_step[step] = final_folder(step);
    for (const std::int64_t step : steps_in(folder_, kReplacedSuffix))
      by_step.try_emplace(step, replaced_name(final_folder(step)));
    for (const std::int64_t step : steps_in(folder_, "", fs::file_type::symlink))
      by_step.try_emplace(step, final_folder(step));
    std::vector<fs::path> found;
    for (const auto& [step, folder] : by_step) {
      if (!step_limit || step <= *step_limit) found.push_back(folder);
    }
    return found;
  });
}

Checkpoint open_checkpoint(const fs::path& folder, VerifyDepth depth) {
  Checkpoint checkpoint{.folder = folder, .manifest = as_checkpoint_error([&] {
                                            return verify_checkpoint(folder, depth);
                                          })};
  const auto named = step_of(folder.filename().string());
  if (named && *named != checkpoint.manifest.step) {
    throw core::CheckpointError(
        core::FileFault{.file = folder.string(),
                        .offset_bytes = {},
                        .expected = fmt::format("step {} in its manifest", *named),
                        .found = fmt::format("step {}", checkpoint.manifest.step)});
  }
  return checkpoint;
}

}  // namespace sidestream::checkpoint
