#include "launch/reporting/appended_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "launch/reporting/torn_line.hpp"

namespace sidestream::launch {
namespace {

constexpr std::chrono::minutes kBetweenWarnings{1};
constexpr std::chrono::seconds kBetweenSyncs{5};
constexpr std::size_t kMostKeptBytes = std::size_t{64} << 20;

std::int64_t size_of(int file) { return std::max<off_t>(0, ::lseek(file, 0, SEEK_END)); }

}  // namespace

void AppendedFile::append(std::string_view bytes, Durability durability) {
  waiting_ += bytes;
  const bool due = std::chrono::steady_clock::now() - last_sync_ >= kBetweenSyncs;
  attempt(due ? Durability::kOnDisk : durability);
  if (trouble_ && waiting_.size() + unsynced_.size() > kMostKeptBytes)
    throw core::WriteError(*trouble_);
}

void AppendedFile::finish() {
  attempt(Durability::kOnDisk);
  if (trouble_) throw core::WriteError(*trouble_);
}

std::optional<std::string> AppendedFile::news(TimePoint now) {
  if (!trouble_) {
    if (!told_) return std::nullopt;
    told_.reset();
    return path_.string() + ": can be written again, with all that waited";
  }
  if (told_ && now - *told_ < kBetweenWarnings) return std::nullopt;
  told_ = now;
  return std::string(trouble_->what()) + ": the run goes on, and this is tried again";
}

void AppendedFile::attempt(Durability durability) {
  try {
    if (durability == Durability::kOnDisk && was_removed()) begun_ = false;
    if (!file_ || !begun_) open();
    write_what_waits();
    if (durability == Durability::kOnDisk) sync_what_was_written();
    trouble_.reset();
  } catch (const core::WriteError& error) {
    trouble_ = error;
    file_.reset();                      // a file server that has restarted may not know it any more
  } catch (const core::Error& error) {  // of the guard
    trouble_ = core::WriteError(error.what(), error.what());
  }
}

// No folder has it any more. One that was moved is written to where it is now.
bool AppendedFile::was_removed() const {
  struct stat status {};
  return file_ && ::fstat(file_.get(), &status) == 0 && status.st_nlink == 0;
}

void AppendedFile::open_again() {
  file_.reset();
  unsynced_.clear();
  lost_ = false;
  begun_ = false;
}

void AppendedFile::open() {
  if (guard_) guard_();
  file_.reset(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file_) core::fail_to_write("cannot open", path_);
  const bool is_another = size_of(file_.get()) < synced_bytes_;
  if (!begun_ || is_another) return begin();
  // A torn end is our own, and what waits is the rest of it.
  if (lost_) take_back_what_was_lost();
}

void AppendedFile::begin() {
  unsynced_.clear();
  lost_ = false;
  drop_rest_of_torn_record();
  if (content_ == Content::kLines && !ends_with_a_line(file_.get())) waiting_.insert(0, "\n");
  synced_bytes_ = size_of(file_.get());
  if (synced_bytes_ == 0 && !waiting_.starts_with(beginning_)) waiting_.insert(0, beginning_);
  begun_ = true;
}

// Its beginning went with the file.
void AppendedFile::drop_rest_of_torn_record() {
  if (!std::exchange(torn_, false)) return;
  const std::size_t end = content_ == Content::kLines ? waiting_.find('\n') : std::string::npos;
  waiting_.erase(0, end == std::string::npos ? end : end + 1);
}

// After a failed sync nobody knows what is on disk (fsync(2)): all since the last good one is
// written again, in its place, unless somebody else has written behind it.
void AppendedFile::take_back_what_was_lost() {
  const auto unsynced = static_cast<std::int64_t>(unsynced_.size());
  const bool alone = size_of(file_.get()) <= synced_bytes_ + unsynced;
  if (alone && ::ftruncate(file_.get(), synced_bytes_) != 0)
    core::fail_to_write("cannot cut", path_);
  waiting_.insert(0, std::exchange(unsynced_, {}));
  lost_ = false;
  torn_ = false;
}

void AppendedFile::write_what_waits() {
  while (!waiting_.empty()) {
    const ssize_t written = ::write(file_.get(), waiting_.data(), waiting_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) core::fail_to_write("cannot write", path_);
    unsynced_.append(waiting_, 0, static_cast<std::size_t>(written));
    waiting_.erase(0, static_cast<std::size_t>(written));
    torn_ = !waiting_.empty() && (content_ == Content::kRecords || !unsynced_.ends_with('\n'));
  }
}

void AppendedFile::sync_what_was_written() {
  last_sync_ = std::chrono::steady_clock::now();
  lost_ = sync_call_(file_.get()) != 0;
  if (lost_) core::fail_to_write("cannot sync", path_);
  synced_bytes_ = size_of(file_.get());
  unsynced_.clear();
}

}  // namespace sidestream::launch
