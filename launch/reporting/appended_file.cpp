#include "launch/reporting/appended_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>

namespace sidestream::launch {
namespace {

constexpr std::chrono::minutes kBetweenWarnings{1};
constexpr std::size_t kMostKeptBytes = std::size_t{64} << 20;

bool ends_with_a_line(int file) {
  const off_t size = ::lseek(file, 0, SEEK_END);
  char last = '\n';
  return size <= 0 || ::pread(file, &last, 1, size - 1) != 1 || last == '\n';
}

}  // namespace

void AppendedFile::append(std::string_view bytes) {
  waiting_ += bytes;
  attempt(Durability::kWritten);
  if (trouble_ && waiting_.size() > kMostKeptBytes) throw core::WriteError(*trouble_);
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
    if (!file_) open();
    write_what_waits();
    if (durability == Durability::kOnDisk && ::fdatasync(file_.get()) != 0)
      core::fail_to_write("cannot sync", path_);
    trouble_.reset();
  } catch (const core::WriteError& error) {
    trouble_ = error;
    file_.reset();  // a file server that has restarted may not know it any more
  }
}

void AppendedFile::open() {
  file_.reset(::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644));
  if (!file_) core::fail_to_write("cannot open", path_);
  // Later a torn end is our own, and what waits is the rest of it.
  if (content_ == Content::kLines && !begun_ && !ends_with_a_line(file_.get()))
    waiting_.insert(0, "\n");
  begun_ = true;
}

void AppendedFile::write_what_waits() {
  while (!waiting_.empty()) {
    const ssize_t written = ::write(file_.get(), waiting_.data(), waiting_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) core::fail_to_write("cannot write", path_);
    waiting_.erase(0, static_cast<std::size_t>(written));
  }
}

}  // namespace sidestream::launch
