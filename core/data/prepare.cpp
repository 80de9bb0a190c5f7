#include "core/data/prepare.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/host_name.hpp"
#include "core/data/parallel_for.hpp"
#include "core/data/prepare_plan.hpp"
#include "core/data/shard_series.hpp"
#include "core/data/tokenizer.hpp"

namespace sidestream::data {
namespace {

namespace fs = std::filesystem;
using core::ConfigError;

constexpr std::uint64_t kWindowBytesPerThread = std::uint64_t{4} << 20;

void require(bool holds, const std::string& what) {
  if (!holds) throw ConfigError("prepare: " + what);
}

// A folder that is being written is locked by its writer; the lock ends with the process, however
// it ends.
core::UniqueFd lock_folder(const fs::path& folder) {
  core::UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) fd.reset();
  return fd;
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
    if (const core::UniqueFd lock = lock_folder(staged)) fs::remove_all(staged, ignored);
  }
}

// The folder under a temporary name, removed unless it was put in place.
class StagedFolder {
 public:
  explicit StagedFolder(const fs::path& target) : target_(absolute_without_slash(target)) {
    require(!is_mount_point(target_),
            "output " + target_.string() +
                ": is a mount point, which has no place for a whole folder to be renamed to: give "
                "a folder inside it");
    if (fs::exists(target_) && !fs::is_directory(target_))
      throw ConfigError("output " + target_.string() + ": expected a folder, found something else");
    require(!fs::exists(target_) || fs::is_empty(target_),
            "output " + target_.string() +
                " exists and is not empty: give another folder, or remove it");
    remove_leftovers(target_);
    make_staged();
  }
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;
  ~StagedFolder() {
    std::error_code ignored;
    if (!staged_.empty()) fs::remove_all(staged_, ignored);
  }

  const fs::path& path() const { return staged_; }
  const fs::path& target() const { return target_; }

  void put_in_place() {
    try {
      fs::rename(staged_, target_);
      core::sync_folder(target_.parent_path());
    } catch (const fs::filesystem_error& error) {
      throw ConfigError("output " + core::filesystem_words(error) + advice_on(error.code()));
    }
    staged_.clear();
  }

 private:
  static std::string advice_on(const std::error_code& error) {
    for (const std::errc taken :
         {std::errc::directory_not_empty, std::errc::file_exists, std::errc::not_a_directory}) {
      if (error == taken)
        return ": something was put there meanwhile; give another folder, or remove it";
    }
    for (const std::errc forbidden :
         {std::errc::permission_denied, std::errc::operation_not_permitted,
          std::errc::read_only_file_system}) {
      if (error == forbidden)
        return ": give another folder, or make the one that it is in writable";
    }
    return "; what was prepared is lost: give another folder, or mend this one";
  }

  // Where a link leads to: the folder lies there, and not beside the link.
  static fs::path absolute_without_slash(const fs::path& target) {
    const fs::path whole = fs::absolute(target).lexically_normal();
    const fs::path name = whole.has_filename() ? whole : whole.parent_path();
    return fs::is_symlink(name) && fs::exists(name) ? fs::canonical(name) : name;
  }

  static bool is_mount_point(const fs::path& target) {
    struct statx about {};
    if (::statx(AT_FDCWD, target.c_str(), 0, STATX_BASIC_STATS, &about) != 0) return false;
    return (about.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  }

  // Hosts that share a file system may have processes of the same number.
  void make_staged() {
    const fs::path staged =
        target_.string() + kStaged + core::host_name() + "." + std::to_string(::getpid());
    std::error_code error;
    const bool is_made = fs::create_directories(staged, error);
    if (error)
      throw ConfigError("cannot make the output folder " + target_.string() + ": " +
                        error.message());
    require(is_made, "output " + target_.string() + ": " + staged.string() +
                         " is there already: another process writes it; if none does, remove it");
    staged_ = staged;
    lock_ = lock_folder(staged_);
  }

  fs::path target_;
  fs::path staged_;
  core::UniqueFd lock_;
};

class Preparation {
 public:
  Preparation(const PrepareConfig& config, const Tokenizer& tokenizer, const fs::path& folder)
      : config_(config),
        tokenizer_(tokenizer),
        end_of_text_(tokenizer.end_of_text()),
        plan_(plan_prepare(config, tokenizer)),
        train_(series_options(folder, Split::kTrain)),
        validation_(series_options(folder, Split::kValidation)) {
    for (int i = 0; i < config.threads; ++i)
      encoders_.push_back(tokenizer.make_encoder(SpecialTokens::kAsText));
    for (const Document& document : plan_.documents)
      progress_.bytes_total += document.last - document.first;
  }

  DatasetInfo run() {
    for (std::size_t first = 0; first < plan_.segments.size();) first = write_window(first);
    train_.finish();
    validation_.finish();
    return info();
  }

 private:
  ShardSeries::Options series_options(const fs::path& folder, Split split) const {
    return {folder, split, width_for(tokenizer_.vocab_size()), config_.shard_tokens,
            [this] { config_.stop_if_asked(); }};
  }

  // Tokenises some segments in parallel and writes them in order; returns where the next window
  // starts.
  std::size_t write_window(std::size_t first) {
    const std::uint64_t limit = kWindowBytesPerThread * static_cast<std::uint64_t>(config_.threads);
    std::size_t last = first;
    std::uint64_t bytes = 0;
    while (last < plan_.segments.size() && bytes < limit) {
      bytes += plan_.segments[last].last - plan_.segments[last].first;
      ++last;
    }
    std::vector<std::vector<std::uint32_t>> ids(last - first);
    parallel_for({.count = ids.size(), .threads = config_.threads, .thread_name = "ss-prepare"},
                 [&](std::uint64_t i, int thread) {
                   config_.stop_if_asked();
                   encode(plan_.segments[first + i], *encoders_[static_cast<std::size_t>(thread)],
                          ids[i]);
                 });
    for (std::size_t i = 0; i < ids.size(); ++i) append(plan_.segments[first + i], ids[i]);
    progress_.bytes_done += bytes;
    progress_.tokens = train_.tokens() + validation_.tokens();
    if (config_.on_progress) config_.on_progress(progress_);
    return last;
  }

  void encode(const Segment& segment, Encoder& encoder, std::vector<std::uint32_t>& ids) const {
    const Document& document = plan_.documents[segment.document];
    const core::MappedFile mapped(document.file.path);
    if (mapped.bytes().size() != document.file.bytes) {
      throw core::DataError(document.file.path.string() + " changed while it was being prepared");
    }
    const auto bytes = mapped.bytes().subspan(segment.first, segment.last - segment.first);
    ids.reserve(bytes.size() / 2);
    encoder.encode({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, ids);
    if (segment.ends_document) ids.push_back(end_of_text_);
  }

  void append(const Segment& segment, const std::vector<std::uint32_t>& ids) {
    const bool train = plan_.documents[segment.document].split == Split::kTrain;
    (train ? train_ : validation_).append(ids);
  }

  SplitInfo split_info(Split split, const ShardSeries& series) const {
    SplitInfo result{.tokens = series.tokens(), .files = 0, .bytes = 0, .shards = series.shards()};
    for (const Document& document : plan_.documents) {
      if (document.split != split) continue;
      ++result.files;
      result.bytes += document.last - document.first;
    }
    return result;
  }

  DatasetInfo info() const {
    return {.tokenizer = std::string(tokenizer_.kind()),
            .vocab_size = tokenizer_.vocab_size(),
            .end_of_text = end_of_text_,
            .val_fraction = config_.val_fraction,
            .seed = config_.seed,
            .train = split_info(Split::kTrain, train_),
            .validation = split_info(Split::kValidation, validation_),
            .skipped = plan_.skipped,
            .skipped_files = plan_.skipped.size()};
  }

  const PrepareConfig& config_;
  const Tokenizer& tokenizer_;
  std::uint32_t end_of_text_;
  PreparePlan plan_;
  ShardSeries train_;
  ShardSeries validation_;
  std::vector<std::unique_ptr<Encoder>> encoders_;
  PrepareProgress progress_;
};

}  // namespace

void PrepareConfig::validate() const {
  require(!inputs.empty(), "at least one input is needed");
  require(!output.empty(), "an output folder is needed");
  require(
      val_fraction >= 0 && val_fraction < 1,
      "the validation fraction must be from 0 to below 1, found " + std::to_string(val_fraction));
  require(shard_tokens >= 1 && shard_tokens <= ShardWriter::kMaxTokens,
          "tokens of a shard must be from 1 to 2147483647, found " + std::to_string(shard_tokens));
  require(threads >= 1 && threads <= kMostThreads, "threads must be from 1 to " +
                                                       std::to_string(kMostThreads) + ", found " +
                                                       std::to_string(threads));
}

void PrepareConfig::stop_if_asked() const {
  if (stop_requested && stop_requested()) throw StoppedPrepare();
}

DatasetInfo prepare(const PrepareConfig& config) try {
  config.validate();
  const auto [tokenizer, tokenizer_text] = open_tokenizer_with_text(config.tokenizer);
  StagedFolder folder(config.output);
  DatasetInfo info = Preparation(config, *tokenizer, folder.path()).run();
  if (info.tokenizer != "bytes") {
    core::write_file_atomically(folder.path() / "tokenizer.json", tokenizer_text);
    info.tokenizer = (folder.target() / "tokenizer.json").string();
  }
  write_dataset_info(folder.path(), info);
  folder.put_in_place();
  return info;
} catch (const fs::filesystem_error& error) {
  throw ConfigError("prepare: " + core::filesystem_words(error));
}

}  // namespace sidestream::data
