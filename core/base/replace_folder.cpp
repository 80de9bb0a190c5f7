#include "core/base/replace_folder.hpp"

#include <system_error>

#include "core/base/file.hpp"

namespace sidestream::core {

namespace fs = std::filesystem;

void replace_in_two_steps(const fs::path& fresh, const fs::path& target, const fs::path& aside) {
  fs::remove_all(aside);
  std::error_code error;
  fs::rename(target, aside, error);
  const bool was_there = !error;
  if (!was_there && error != std::errc::no_such_file_or_directory)
    throw fs::filesystem_error("cannot rename", target, aside, error);
  fs::rename(fresh, target, error);
  if (error) {
    std::error_code lost;
    if (was_there) fs::rename(aside, target, lost);
    throw fs::filesystem_error("cannot rename", lost ? aside : fresh, target, error);
  }
  sync_folder(target.parent_path());
  fs::remove_all(aside, error);  // an open file on NFS: it takes up room, and no more
}

}  // namespace sidestream::core
