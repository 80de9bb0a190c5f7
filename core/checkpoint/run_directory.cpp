#include "core/checkpoint/run_directory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "core/base/error.hpp"
#include "core/base/host_name.hpp"

namespace sidestream::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLockTextBytes = 256;

void create_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw core::ConfigError(
        fmt::format("--run-dir: cannot create {}: {}", folder.string(), error.message()));
  }
}

void refuse_link(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_symlink(path, ignored)) return;
  throw core::ConfigError(
      fmt::format("--run-dir: {} is a link, which a run does not follow. Let --run-dir itself be "
                  "the link, or remove this one.",
                  path.string()));
}

// A pipe, say, would be opened for ever.
void require_file(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  if (!fs::exists(status) || fs::is_regular_file(status)) return;
  throw core::ConfigError(
      fmt::format("--run-dir: {}: expected a file of a run, found something else (a folder, a "
                  "pipe): remove it, "
                  "or choose another --run-dir",
                  path.string()));
}

// Folders in which a run makes more folders: a link among these leads out as well.
void refuse_links_below(const fs::path& folder) {
  std::error_code error;
  fs::recursive_directory_iterator entry(folder, fs::directory_options::skip_permission_denied,
                                         error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error))
    refuse_link(entry->path());
}

// What a run writes stays in its directory, wherever somebody lets a name in it lead.
void refuse_what_is_not_of_a_run(const RunPaths& paths) {
  for (const fs::path& path :
       {paths.config(), paths.run_json(), paths.lock(), paths.metrics(), paths.ettr(),
        paths.incidents(), paths.checkpoints(), paths.flight(), paths.report(), paths.traces()}) {
    refuse_link(path);
  }
  for (const fs::path& path : {paths.config(), paths.run_json(), paths.lock(), paths.metrics(),
                               paths.ettr(), paths.incidents()})
    require_file(path);
  refuse_links_below(paths.flight());
  refuse_links_below(paths.traces());
}

std::string content_of(int fd) {
  std::array<char, kLockTextBytes> text{};
  const ssize_t length = ::pread(fd, text.data(), text.size(), 0);
  return {text.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
}

std::string owner_text() { return fmt::format("process {} on {}", ::getpid(), core::host_name()); }

core::UniqueFd take_lock(const RunPaths& paths) {
  core::UniqueFd lock(
      ::open(paths.lock().c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!lock) {
    throw core::ConfigError("--run-dir: " +
                            core::system_error_text("cannot create", paths.lock(), errno));
  }
  if (::flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) {
      throw core::ConfigError("--run-dir: " +
                              core::system_error_text("cannot lock", paths.lock(), errno));
    }
    throw core::ConfigError(
        fmt::format("--run-dir: {} is in use by {}. Wait for it, or choose another --run-dir.",
                    paths.root().string(), content_of(lock.get())));
  }
  // For people only; the lock itself ends with the process, so a stale text does no harm.
  const std::string owner = owner_text();
  if (::ftruncate(lock.get(), 0) != 0 || ::pwrite(lock.get(), owner.data(), owner.size(), 0) < 0) {
    throw core::ConfigError("--run-dir: " +
                            core::system_error_text("cannot write", paths.lock(), errno));
  }
  return lock;
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

void probe_writing(const fs::path& folder) {
  // Ranks of several hosts may try one folder at once.
  const fs::path probe = folder / fmt::format(".probe.{}.{}", core::host_name(), ::getpid());
  try {
    core::write_file_atomically(probe, "probe");
  } catch (const core::Error& error) {
    throw core::ConfigError(
        fmt::format("--run-dir: {} is not writable: {}", folder.string(), error.what()));
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

RunDirectory::RunDirectory(const fs::path& root, UsedRun used) : paths_(root) {
  create_folder(root);
  probe_writing(root);
  refuse_what_is_not_of_a_run(paths_);
  lock_ = take_lock(paths_);
  if (used == UsedRun::kRefuse && is_used(paths_)) {
    throw core::ConfigError(
        fmt::format("--run-dir: {} holds an earlier run. Continue it with --resume auto, or choose "
                    "another --run-dir.",
                    root.string()));
  }
  create_folder(paths_.checkpoints());
  probe_writing(paths_.checkpoints());
  core::sync_folder(root);
}

}  // namespace sidestream::checkpoint
