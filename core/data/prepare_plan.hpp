// Which bytes of which files go into which split, decided before anything is tokenised.
#pragma once

#include <cstdint>
#include <vector>

#include "core/data/corpus_files.hpp"
#include "core/data/prepare.hpp"
#include "core/data/split.hpp"
#include "core/data/tokenizer.hpp"

namespace sidestream::data {

// A file, or one side of the only file.
struct Document {
  CorpusFile file;
  std::uint64_t first = 0;  // byte range
  std::uint64_t last = 0;
  Split split = Split::kTrain;
};

// What one thread tokenises at a time; cut where no id changes by the cut.
struct Segment {
  std::size_t document = 0;
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  bool ends_document = false;
};

struct PreparePlan {
  std::vector<Document> documents;
  std::vector<Segment> segments;
  std::vector<SkippedFile> skipped;
};

// Reads all files twice. Throws StoppedPrepare once PrepareConfig::stop_requested says so.
PreparePlan plan_prepare(const PrepareConfig& config, const Tokenizer& tokenizer);

}  // namespace sidestream::data
