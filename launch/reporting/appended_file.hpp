// A file that a run appends records to while it trains: lines of JSON, events of TensorBoard.
//
// A disk that is full for a while, or a file server that restarts, is no reason to end a run: what
// cannot be written now is kept, in order, and written as soon as it can be.
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/file.hpp"
#include "core/base/write_error.hpp"

namespace sidestream::launch {

class AppendedFile {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using SyncCall = std::function<int(int)>;  // as fdatasync(2)

  // kLines: a last line that a kill has torn is closed first, so that it spoils no other.
  enum class Content { kLines, kRecords };
  enum class Durability { kWritten, kOnDisk };

  // Touches nothing yet. `sync_call`: for tests.
  AppendedFile(std::filesystem::path path, Content content, SyncCall sync_call = ::fdatasync)
      : path_(std::move(path)), content_(content), sync_call_(std::move(sync_call)) {}

  // Called before the file is opened by its name; whatever it throws is trouble(), and nothing is
  // opened. A folder may have got another owner since this file was open last.
  void guard_opening(std::function<void()> guard) { guard_ = std::move(guard); }

  // Makes the file where there is none (a link is not followed), writes what waits and then this,
  // and syncs every few seconds, or now; trouble() says whether it could. Throws WriteError only
  // where more waits than memory should hold.
  void append(std::string_view bytes, Durability durability = Durability::kWritten);

  // On disk now, as far as it can be.
  void sync() { attempt(Durability::kOnDisk); }

  // All that waits, on disk. Throws WriteError when it cannot.
  void finish();

  // What a file begins with that is made in the place of one that was removed: records of which the
  // later ones make no sense without.
  void begin_anew_with(std::string records) { beginning_ = std::move(records); }

  // For who has put another file in its place: the next record goes there.
  void open_again();

  // Why the last attempt failed; nothing where it did not.
  const std::optional<core::WriteError>& trouble() const noexcept { return trouble_; }

  // For people: that it cannot be written (at once, and every minute again), or that it can again.
  std::optional<std::string> news(TimePoint now = std::chrono::steady_clock::now());

  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  void attempt(Durability durability);
  bool was_removed() const;
  void open();
  void begin();
  void drop_rest_of_torn_record();
  void take_back_what_was_lost();
  void write_what_waits();
  void sync_what_was_written();

  std::filesystem::path path_;
  Content content_;
  SyncCall sync_call_;
  std::function<void()> guard_;
  core::UniqueFd file_;
  bool begun_ = false;  // something of this object is in the file
  bool lost_ = false;   // the system has dropped what it had taken
  bool torn_ = false;   // what waits begins with the rest of a record
  std::string beginning_;
  std::string waiting_;
  std::string unsynced_;           // written, perhaps not on disk
  std::int64_t synced_bytes_ = 0;  // of the file, on disk
  TimePoint last_sync_ = std::chrono::steady_clock::now();
  std::optional<core::WriteError> trouble_;
  std::optional<TimePoint> told_;  // of a trouble that people have heard of
};

}  // namespace sidestream::launch
