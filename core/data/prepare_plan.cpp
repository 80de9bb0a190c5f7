#include "core/data/prepare_plan.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/printable.hpp"
#include "core/base/random_bits.hpp"
#include "core/base/utf8.hpp"
#include "core/data/parallel_for.hpp"

namespace sidestream::data {
namespace {

constexpr std::size_t kSegmentBytes = std::size_t{1} << 20;

std::string_view text_of(const core::MappedFile& file) {
  return {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()};
}

// What is looked at at once: some megabytes that end with a whole character.
std::size_t piece_length(std::string_view text) {
  constexpr std::size_t kPieceBytes = std::size_t{16} << 20, kLongestCharacter = 4;
  if (text.size() <= kPieceBytes) return text.size();
  std::size_t length = kPieceBytes;
  while (length > kPieceBytes - kLongestCharacter && core::is_utf8_continuation(text[length]))
    --length;
  return length;
}

// Why a file cannot be tokenised; empty when it can. Sets the size that was seen.
std::string reason_to_skip(CorpusFile& file, const Tokenizer& tokenizer,
                           const PrepareConfig& config) {
  if (!file.fault.empty()) return file.fault;
  try {
    const core::MappedFile mapped(file.path);
    const std::string_view text = text_of(mapped);
    file.bytes = text.size();
    if (text.empty()) return "empty";
    for (std::size_t first = 0; first < text.size();) {
      config.stop_if_asked();
      const std::string_view piece = text.substr(first, piece_length(text.substr(first)));
      if (const std::size_t nul = piece.find('\0'); nul != std::string_view::npos)
        return "binary: a NUL at byte " + std::to_string(first + nul);
      const auto bad = tokenizer.needs_utf8() ? core::find_invalid_utf8(piece) : std::nullopt;
      if (bad) return "not UTF-8 at byte " + std::to_string(first + *bad);
      first += piece.size();
    }
    return "";
  } catch (const StoppedPrepare&) {
    throw;
  } catch (const core::Error& error) {
    return error.what();
  }
}

double hash_of(const std::string& name, std::uint64_t seed) {
  std::uint64_t hash = 0xCBF29CE484222325u;  // FNV-1a
  for (const char byte : name) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001B3u;
  return static_cast<double>(core::mix_bits(seed, hash) >> 11) * 0x1p-53;
}

// Of few files: neither side may stay empty.
void move_across(Document& document, Split split, const PrepareConfig& config) {
  document.split = split;
  if (!config.on_note) return;
  const bool to_training = split == Split::kTrain;
  config.on_note(std::string(to_training ? "every file" : "no file") +
                 " falls into validation by its name: " + core::printable(document.file.name) +
                 ", the nearest, is in " + (to_training ? "training" : "validation") +
                 " for that reason only, and more files may move it back");
}

void split_by_file(std::vector<Document>& documents, const PrepareConfig& config) {
  std::vector<double> hashes;
  std::size_t in_validation = 0;
  for (Document& document : documents) {
    hashes.push_back(hash_of(document.file.name, config.seed));
    if (hashes.back() >= config.val_fraction) continue;
    document.split = Split::kValidation;
    ++in_validation;
  }
  const auto [lowest, highest] = std::minmax_element(hashes.begin(), hashes.end());
  const auto document_of = [&](const auto& hash) -> Document& {
    return documents[static_cast<std::size_t>(hash - hashes.begin())];
  };
  if (in_validation == 0) move_across(document_of(lowest), Split::kValidation, config);
  if (in_validation == documents.size()) move_across(document_of(highest), Split::kTrain, config);
}

// The only file: its last lines are for validation.
void split_by_line(std::vector<Document>& documents, double val_fraction) {
  Document& train = documents.front();
  const core::MappedFile mapped(train.file.path);
  const auto wanted =
      static_cast<std::size_t>(std::floor(static_cast<double>(train.last) * (1.0 - val_fraction)));
  std::size_t newline = text_of(mapped).find('\n', wanted);
  if (newline == std::string_view::npos || newline + 1 == train.last) {
    // The last line is for validation, however little is wanted.
    const std::size_t before_its_end = std::min<std::size_t>(wanted, train.last - 1);
    newline = text_of(mapped).substr(0, before_its_end).rfind('\n');
  }
  if (newline == std::string_view::npos) {
    throw core::DataError(
        train.file.path.string() +
        ": the only file has no two lines to cut it into training and validation; use a validation "
        "fraction of 0, or more files");
  }
  Document validation = train;
  train.last = newline + 1;
  validation.first = newline + 1;
  validation.split = Split::kValidation;
  documents.push_back(std::move(validation));
}

std::vector<Segment> segments_of(std::size_t number, const Document& document,
                                 const Tokenizer& tokenizer, const PrepareConfig& config) {
  std::vector<Segment> segments;
  const core::MappedFile mapped(document.file.path);
  if (mapped.bytes().size() != document.file.bytes) {
    throw core::DataError(document.file.path.string() + " changed while it was being prepared");
  }
  const std::string_view text =
      text_of(mapped).substr(document.first, document.last - document.first);
  for (std::size_t first = 0; first < text.size();) {
    config.stop_if_asked();
    const std::size_t length = tokenizer.safe_cut(text.substr(first), kSegmentBytes);
    segments.push_back({number, document.first + first, document.first + first + length, false});
    first += length;
  }
  segments.back().ends_document = true;
  return segments;
}

void take_usable(PreparePlan& plan, const PrepareConfig& config, const Tokenizer& tokenizer) {
  std::vector<CorpusFile> files = find_corpus_files(config.inputs, config.include);
  std::vector<std::string> reasons(files.size());
  parallel_for(
      {.count = files.size(), .threads = config.threads, .thread_name = "ss-prepare"},
      [&](std::uint64_t i, int) { reasons[i] = reason_to_skip(files[i], tokenizer, config); });
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!reasons[i].empty()) {
      plan.skipped.push_back({files[i].name, reasons[i]});
      continue;
    }
    const std::uint64_t bytes = files[i].bytes;
    plan.documents.push_back({.file = std::move(files[i]), .last = bytes});
  }
  if (plan.documents.empty()) {
    const std::string found = files.size() == 1
                                  ? "the one file is skipped ("
                                  : std::to_string(files.size()) + " files found, all skipped (";
    throw core::DataError("no text to prepare: " + found + plan.skipped.front().name + ": " +
                          plan.skipped.front().reason + ")");
  }
}

}  // namespace

PreparePlan plan_prepare(const PrepareConfig& config, const Tokenizer& tokenizer) {
  PreparePlan plan;
  take_usable(plan, config, tokenizer);
  if (config.val_fraction > 0) {
    if (plan.documents.size() == 1) {
      split_by_line(plan.documents, config.val_fraction);
    } else {
      split_by_file(plan.documents, config);
    }
  }
  std::vector<std::vector<Segment>> segments(plan.documents.size());
  parallel_for({.count = segments.size(), .threads = config.threads, .thread_name = "ss-prepare"},
               [&](std::uint64_t i, int) {
                 segments[i] = segments_of(i, plan.documents[i], tokenizer, config);
               });
  for (const auto& some : segments)
    plan.segments.insert(plan.segments.end(), some.begin(), some.end());
  return plan;
}

}  // namespace sidestream::data
