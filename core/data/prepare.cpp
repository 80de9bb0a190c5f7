#include "core/data/prepare.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/data/parallel_for.hpp"
#include "core/data/prepare_plan.hpp"
#include "core/data/shard_series.hpp"
#include "core/data/staged_folder.hpp"
#include "core/data/tokenizer.hpp"

namespace sidestream::data {
namespace {

namespace fs = std::filesystem;
using core::ConfigError;

constexpr std::uint64_t kWindowBytesPerThread = std::uint64_t{4} << 20;

void require(bool holds, const std::string& what) {
  if (!holds) throw ConfigError("prepare: " + what);
}

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
