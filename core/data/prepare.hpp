// From text files to a data folder: train_000000.bin, val_000000.bin, dataset.json and the
// tokenizer's tokenizer.json.
//
// Files are split into training and validation by a hash of their names, so that no file is in both
// and more files do not move old ones; but of few files the hash may leave a side empty, and that
// side then gets the nearest one, which more files may move back. Each file is followed by the
// end-of-text token. Nothing depends on the number of threads. The folder is made beside its final
// name and renamed when it is complete: what was interrupted is not there.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/data/dataset_info.hpp"

namespace sidestream::data {

struct PrepareProgress {
  std::uint64_t bytes_done = 0;
  std::uint64_t bytes_total = 0;
  std::uint64_t tokens = 0;
};

struct PrepareConfig {
  static constexpr int kMostThreads = 1024;

  std::vector<std::string> inputs;   // files, folders, globs
  std::vector<std::string> include;  // patterns of file names inside folders (*.hpp); empty: all
  std::filesystem::path output;
  std::string tokenizer = "bytes";  // or the path of a tokenizer.json
  double val_fraction =
      0.1;  // of the files; 0: no validation shards. One file is cut at a line instead.
  std::uint64_t seed = 0;  // of the split
  std::uint64_t shard_tokens = 100'000'000;
  int threads = 1;  // at most kMostThreads
  std::function<void(const PrepareProgress&)> on_progress = {};
  // Hears of what has become other than the options say.
  std::function<void(const std::string&)> on_note = {};
  // Asked every few megabytes, by any thread; true: prepare throws StoppedPrepare and leaves
  // nothing behind.
  std::function<bool()> stop_requested = {};

  // Throws ConfigError that names the field.
  void validate() const;
  // Throws StoppedPrepare.
  void stop_if_asked() const;
};

class StoppedPrepare : public core::Error {
 public:
  StoppedPrepare() : Error("prepare: stopped as asked; nothing was left behind") {}
};

// Throws ConfigError (configuration, output folder), DataError (no input, no text, bad tokenizer),
// Error (disk). Files that cannot be tokenised are skipped and listed with the reason. Returns what
// dataset.json holds, with the tokenizer's path in the new folder.
DatasetInfo prepare(const PrepareConfig& config);

}  // namespace sidestream::data
