#include "core/checkpoint/run_directory.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

#include "core/base/error.hpp"
#include "core/base/host_name.hpp"

namespace sidestream::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLockTextBytes = 256;

// `called`: what people choose the folder by, as messages begin with it.
void create_folder(const fs::path& folder, std::string_view called) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_directory(folder, error)) {
    throw core::ConfigError(fmt::format(
        "{0}: {1} is not a folder: move it away, or choose another {0}", called, folder.string()));
  }
  fs::create_directories(folder, error);
  if (error) {
    throw core::ConfigError(
        fmt::format("{}: cannot create {}: {}", called, folder.string(), error.message()));
  }
}

void refuse_link(const fs::path& path, std::string_view called) {
  std::error_code ignored;
  if (!fs::is_symlink(path, ignored)) return;
  throw core::ConfigError(
      fmt::format("{0}: {1} is a link, which a run does not follow. Let {0} itself be "
                  "the link, or remove this one.",
                  called, path.string()));
}

// A pipe, say, would be opened for ever.
void require_file(const fs::path& path, std::string_view called) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (!fs::exists(status) || fs::is_regular_file(status)) return;
  throw core::ConfigError(
      fmt::format("{0}: {1}: expected a file of a run, found something else (a folder, a pipe): "
                  "remove it, or choose another {0}",
                  called, path.string()));
}

// Folders in which a run makes more folders: a link among these leads out as well.
void refuse_links_below(const fs::path& folder, std::string_view called) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied,
                                         error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error))
    refuse_link(entry->path(), called);
}

// What a run writes stays in its directory, wherever somebody lets a name in it lead.
void refuse_what_is_not_of_a_run(const RunPaths& paths, std::string_view called) {
  for (const fs::path& path :
       {paths.config(), paths.run_json(), paths.lock(), paths.metrics(), paths.ettr(),
        paths.incidents(), paths.checkpoints(), paths.flight(), paths.report(), paths.traces()}) {
    refuse_link(path, called);
  }
  for (const fs::path& path : {paths.config(), paths.run_json(), paths.lock(), paths.metrics(),
                               paths.ettr(), paths.incidents()})
    require_file(path, called);
  refuse_links_below(paths.flight(), called);
  refuse_links_below(paths.traces(), called);
}

std::string content_of(int fd) {
  std::array<char, kLockTextBytes> text{};
  const ssize_t length = ::pread(fd, text.data(), text.size(), 0);
  return {text.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
}

// With the time: numbers of processes come again, and hosts of containers have one name.
std::string owner_text() {
  return fmt::format("process {} on {} since {:%Y-%m-%dT%H:%M:%SZ}", ::getpid(), core::host_name(),
                     fmt::gmtime(std::time(nullptr)));
}

// Of the call that has just failed.
core::ConfigError system_error(std::string_view called, const char* what, const fs::path& path) {
  return core::ConfigError(
      fmt::format("{}: {}", called, core::system_error_text(what, path, errno)));
}

core::UniqueFd take_lock(const RunPaths& paths, const std::string& owner, std::string_view called) {
  core::UniqueFd lock(
      ::open(paths.lock().c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!lock) {
    throw system_error(called, "cannot create", paths.lock());
  }
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      throw system_error(called, "cannot lock", paths.lock());
    }
    throw core::ConfigError(
        fmt::format("{0}: {1} is in use by {2}. Wait for it, or choose another {0}.", called,
                    paths.root().string(), content_of(lock.get())));
  }
  // For people, and for hold(); the lock itself ends with the process, so a stale text does no
  // harm. Written over it, for which a full disk has room.
  if (::pwrite(lock.get(), owner.data(), owner.size(), 0) < 0 ||
      ::ftruncate(lock.get(), static_cast<off_t>(owner.size())) != 0) {
    throw system_error(called, "cannot write", paths.lock());
  }
  return lock;
}

core::UniqueFd open_folder(const fs::path& folder, std::string_view called) {
  core::UniqueFd fd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) throw system_error(called, "cannot open", folder);
  return fd;
}

// Where that cannot be told (a file server is away), whoever writes there will say so.
bool is_still_at(const core::UniqueFd& fd, const fs::path& path) {
  struct stat held {};
  struct stat named {};
  if (::stat(path.c_str(), &named) != 0) return errno != ENOENT && errno != ENOTDIR;
  return ::fstat(fd.get(), &held) == 0 && held.st_dev == named.st_dev &&
         held.st_ino == named.st_ino;
}

// A file system that is mounted anew has other numbers, and what this process wrote.
bool has_lock_text(const RunPaths& paths, const std::string& text) {
  const core::UniqueFd lock(::open(paths.lock().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  return lock && content_of(lock.get()) == text;
}

// What a killed start has left of its look at the folder is none.
bool has_checkpoints(const fs::path& folder) {
  std::error_code ignored;
  for (fs::directory_iterator entry(folder, ignored), end; entry != end; entry.increment(ignored)) {
    if (!entry->path().filename().string().starts_with(".probe.")) return true;
  }
  return false;
}

}  // namespace

void probe_writing(const fs::path& folder, std::string_view called) {
  // Ranks of several hosts may try one folder at once.
  const fs::path probe = folder / fmt::format(".probe.{}.{}", core::host_name(), ::getpid());
  try {
    core::write_file_atomically(probe, "probe");
  } catch (const core::Error& error) {
    throw core::ConfigError(
        fmt::format("{}: {} is not writable: {}", called, folder.string(), error.what()));
  }
  ::unlink(probe.c_str());
}

bool RunDirectory::is_used(const RunPaths& paths) {
  std::error_code ignored;
  const bool has_files = fs::exists(paths.config(), ignored) ||
                         fs::exists(paths.run_json(), ignored) ||
                         fs::exists(paths.metrics(), ignored);
  return has_files || has_checkpoints(paths.checkpoints());
}

RunDirectory::RunDirectory(const fs::path& root, UsedRun used, std::string_view called,
                           const MakeRoom& make_room)
    : paths_(root), called_(called), lock_text_(owner_text()) {
  claim(used, make_room);
}

void RunDirectory::claim(UsedRun used, const MakeRoom& make_room) {
  const fs::path& root = paths_.root();
  create_folder(root, called_);
  // Where no run has been, nothing of one is in the way, and this says best what is.
  const bool is_new = !core::is_there(paths_.lock());
  if (is_new) probe_writing(root, called_);
  refuse_what_is_not_of_a_run(paths_, called_);
  lock_ = take_lock(paths_, lock_text_, called_);
  if (used == UsedRun::kRefuse && is_used(paths_)) {
    throw core::ConfigError(
        fmt::format("{0}: {1} holds an earlier run. Continue it with --resume auto, or choose "
                    "another {0}.",
                    called_, root.string()));
  }
  if (make_room) make_room(paths_);
  if (!is_new) probe_writing(root, called_);
  root_ = open_folder(root, called_);
  make_checkpoints_folder();
}

void RunDirectory::make_checkpoints_folder() {
  create_folder(paths_.checkpoints(), called_);
  probe_writing(paths_.checkpoints(), called_);
  core::sync_folder(paths_.root());
  checkpoints_ = open_folder(paths_.checkpoints(), called_);
}

// People remove one that seems to be in the way; then another run may have begun meanwhile.
void RunDirectory::hold_lock() {
  if (is_still_at(lock_, paths_.lock())) return;
  lock_.reset();
  try {
    lock_ = take_lock(paths_, lock_text_, called_);
  } catch (const core::ConfigError& error) {
    throw core::CheckpointError(error.what());
  }
}

std::optional<std::string> RunDirectory::hold() {
  const bool has_root = is_still_at(root_, paths_.root());
  if (has_root) hold_lock();
  if (has_root && is_still_at(checkpoints_, paths_.checkpoints())) return std::nullopt;
  const bool is_back = !has_root && has_lock_text(paths_, lock_text_);
  if (!has_root && !is_back && is_used(paths_)) {
    throw core::CheckpointError(
        fmt::format("{}: {} is not the folder in which this run began (that was moved, or "
                    "something is mounted over it), and holds another run: nothing is saved there",
                    called_, paths_.root().string()));
  }
  try {
    if (!has_root) {
      lock_.reset();
      claim(UsedRun::kContinue, {});
    } else {
      make_checkpoints_folder();
    }
  } catch (const core::Error& error) {
    throw core::CheckpointError(error.what());
  }
  if (is_back) return std::nullopt;
  return fmt::format(
      "{}: {} has gone in the middle of the run (removed, moved, or its file system "
      "unmounted): it is made again, without what was in it{}",
      called_, (has_root ? paths_.checkpoints() : paths_.root()).string(),
      has_root ? "" : ". If it was moved, its logs go on there, and checkpoints are saved here");
}

}  // namespace sidestream::checkpoint
