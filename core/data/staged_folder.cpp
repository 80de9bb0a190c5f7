#include "core/data/staged_folder.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/host_name.hpp"

namespace sidestream::data {
namespace {

namespace fs = std::filesystem;
using core::ConfigError;

void require_of_output(bool holds, const std::string& what) {
  if (!holds) throw ConfigError("prepare: output " + what);
}

core::UniqueFd open_folder(const fs::path& folder) {
  return core::UniqueFd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// What was opened by a name may have been removed since, and another folder may have the name.
bool still_has_name(const core::UniqueFd& fd, const fs::path& folder) {
  struct stat opened {
  }, named{};
  return ::fstat(fd.get(), &opened) == 0 && ::stat(folder.c_str(), &named) == 0 &&
         opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

// FOLDER.tmp.HOST.PID; the ending that all of them have in common.
constexpr const char* kStaged = ".tmp.";

std::vector<fs::path> staged_beside(const fs::path& target) {
  const std::string prefix = target.filename().string() + kStaged;
  std::vector<fs::path> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(target.parent_path(), ignored))
    if (entry.path().filename().string().starts_with(prefix)) found.push_back(entry.path());
  return found;
}

// What calls that were killed have left beside the output.
void remove_leftovers(const fs::path& target) {
  std::error_code ignored;
  for (const fs::path& staged : staged_beside(target)) {
    const core::UniqueFd fd = open_folder(staged);
    if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 && still_has_name(fd, staged))
      fs::remove_all(staged, ignored);
  }
}

std::string advice_on(const std::error_code& error) {
  for (const std::errc taken :
       {std::errc::directory_not_empty, std::errc::file_exists, std::errc::not_a_directory}) {
    if (error == taken)
      return ": something was put there meanwhile; give another folder, or remove it";
  }
  for (const std::errc forbidden :
       {std::errc::permission_denied, std::errc::operation_not_permitted,
        std::errc::read_only_file_system}) {
    if (error == forbidden) return ": give another folder, or make the one that it is in writable";
  }
  return "; what was prepared is lost: give another folder, or mend this one";
}

// Where a link leads to: the folder lies there, and not beside the link.
fs::path absolute_without_slash(const fs::path& target) {
  const fs::path whole = fs::absolute(target).lexically_normal();
  const fs::path name = whole.has_filename() ? whole : whole.parent_path();
  return fs::is_symlink(name) && fs::exists(name) ? fs::canonical(name) : name;
}

bool is_mount_point(const fs::path& target) {
  struct statx about {};
  if (::statx(AT_FDCWD, target.c_str(), 0, STATX_BASIC_STATS, &about) != 0) return false;
  return (about.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

}  // namespace

StagedFolder::StagedFolder(const fs::path& target) : target_(absolute_without_slash(target)) {
  require_of_output(!is_mount_point(target_),
                    target_.string() +
                        ": is a mount point, which has no place for a whole folder to be renamed "
                        "to: give a folder inside it");
  if (fs::exists(target_) && !fs::is_directory(target_))
    throw ConfigError("output " + target_.string() + ": expected a folder, found something else");
  require_of_output(
      !fs::exists(target_) || fs::is_empty(target_),
      target_.string() + " exists and is not empty: give another folder, or remove it");
  remove_leftovers(target_);
  make_staged();
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  if (!staged_.empty()) fs::remove_all(staged_, ignored);
}

void StagedFolder::put_in_place() {
  try {
    fs::rename(staged_, target_);
    core::sync_folder(target_.parent_path());
  } catch (const fs::filesystem_error& error) {
    throw ConfigError("output " + core::filesystem_words(error) + advice_on(error.code()));
  }
  staged_.clear();
}

// Hosts that share a file system may have processes of the same number.
void StagedFolder::make_staged() {
  constexpr int kAttempts = 100;
  const fs::path staged =
      target_.string() + kStaged + core::host_name() + "." + std::to_string(::getpid());
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (!make_and_hold(staged)) continue;
    staged_ = staged;
    return;
  }
  throw ConfigError("prepare: output " + target_.string() + ": other processes remove " +
                    staged.string() + " whenever it is made: give another folder");
}

// False where another process has removed it before it was locked, as something left over. It holds
// the lock while it does that, which is waited for. Where the file system knows no locks, nobody
// removes it.
bool StagedFolder::make_and_hold(const fs::path& staged) {
  std::error_code error;
  const bool is_made = fs::create_directories(staged, error);
  if (error)
    throw ConfigError("cannot make the output folder " + target_.string() + ": " + error.message());
  require_of_output(is_made,
                    target_.string() + ": " + staged.string() +
                        " is there already: another process writes it; if none does, remove it");
  lock_ = open_folder(staged);
  if (!lock_) return errno != ENOENT;  // too many open files, say: then there is no lock
  while (::flock(lock_.get(), LOCK_EX) != 0 && errno == EINTR) {
  }
  return still_has_name(lock_, staged);
}

}  // namespace sidestream::data
