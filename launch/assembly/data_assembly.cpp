#include "launch/assembly/data_assembly.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "core/data/dataset_info.hpp"
#include "core/data/tokenizer.hpp"
#include "launch/assembly/assembly.hpp"
#include "launch/options/train_parser.hpp"

namespace sidestream::launch {
namespace {

bool is_synthetic(const TrainOptions& options) { return options.data.source == "synthetic"; }

// Shards without a dataset.json, as those of llm.c and nanoGPT, hold GPT-2's tokens where the
// vocabulary is as large (tiktoken's `gpt2`: <|endoftext|> is its last).
constexpr std::int64_t kGpt2Vocabulary = 50257, kGpt2EndOfText = 50256;

// What the model says when the data cannot: --vocab-size, or the preset's.
std::int64_t known_vocabulary(const TrainOptions& options) {
  if (options.model.vocab_size_given) return options.model.config.vocab_size;
  return model::preset(options.model.preset).vocab_size;
}

// What checkpoints get a copy of, nothing for bytes, and its end of a text. Read before training
// and kept: at a save the folder of the data may be gone, or prepared anew.
void take_tokenizer(const std::string& name, const std::optional<data::DatasetInfo>& info,
                    DataSources& sources) {
  auto [tokenizer, text] = data::open_tokenizer_with_text(name);
  const auto tokens = static_cast<std::int64_t>(tokenizer->vocab_size());
  if (info ? tokens != sources.vocab_size : tokens > sources.vocab_size) {
    throw core::DataError(fmt::format(
        "--tokenizer {}: expected the tokenizer that the data was made with, of {} tokens{}, found "
        "one of {}",
        name, sources.vocab_size, info ? " by its dataset.json" : "", tokens));
  }
  if (const auto id = tokenizer->find_end_of_text(); id && !sources.end_of_text)
    sources.end_of_text = *id;
  if (tokenizer->kind() == "bytes") return;
  sources.tokenizer = std::make_shared<const std::string>(std::move(text));
}

}  // namespace

DataSources open_data(const TrainOptions& options) {
  if (options.data.source.empty()) {
    throw core::ConfigError(
        "--data is missing: give a folder with token shards (`sidestream prepare` makes one), or "
        "--data synthetic");
  }
  DataSources sources;
  if (is_synthetic(options)) {
    sources.vocab_size = known_vocabulary(options);
    sources.train = std::make_shared<data::SyntheticSource>(
        static_cast<std::uint64_t>(sources.vocab_size), options.seed);
    return sources;
  }
  const std::filesystem::path folder = options.data.source;
  sources.train = data::open_source(folder, data::Split::kTrain);
  if (data::has_split(folder, data::Split::kValidation)) {
    sources.validation = std::make_shared<data::TokenStream>(
        data::TokenStream::open(folder, data::Split::kValidation));
  } else if (options.evaluation.every > 0) {
    throw core::DataError(fmt::format(
        "{} has no shard with `val` in its name, and --eval-every asks for evaluations: "
        "add one, or say --eval-every 0",
        folder.string()));
  }
  const auto info = data::read_dataset_info(folder);
  if (info) {
    data::require_shards(folder, info->train);
    data::require_shards(folder, info->validation);
  }
  sources.vocab_size =
      info ? static_cast<std::int64_t>(info->vocab_size) : known_vocabulary(options);
  std::string tokenizer = options.data.tokenizer.string();
  if (tokenizer.empty() && info) tokenizer = info->tokenizer;
  if (info) sources.end_of_text = info->end_of_text;
  if (!tokenizer.empty()) take_tokenizer(tokenizer, info, sources);
  if (!info && tokenizer.empty() && sources.vocab_size == kGpt2Vocabulary)
    sources.end_of_text = kGpt2EndOfText;
  return sources;
}

data::Fingerprints fingerprints_of(const DataSources& sources, const TrainOptions& options) {
  if (is_synthetic(options)) return {};
  data::Fingerprints prints{.train = data::fingerprint_of(
                                data::TokenStream::open(options.data.source, data::Split::kTrain))};
  if (sources.validation) prints.validation = data::fingerprint_of(*sources.validation);
  return prints;
}

data::LoaderConfig loader_config(const TrainOptions& options, const comm::Topology& topology,
                                 const LoaderStart& start, const LoaderMemory& memory) {
  return {.batch_size = static_cast<std::uint64_t>(options.data.batch_size_per_rank),
          .sequence_length = static_cast<std::uint64_t>(sequence_length(options)),
          .grad_accumulation = static_cast<std::uint64_t>(options.parallel.grad_accumulation),
          .rank = static_cast<std::uint64_t>(topology.rank),
          .world_size = static_cast<std::uint64_t>(topology.size),
          .shuffle = options.data.shuffle ? data::Shuffle::kOn : data::Shuffle::kOff,
          .seed = options.seed,
          .fix_batch = options.data.fix_batch ? data::FixBatch::kOn : data::FixBatch::kOff,
          .first_step = start.first_step,
          .first_sample = options.data.fix_batch ? 0 : start.first_sample,
          .workers = options.data.loader_workers,
          .prefetch = std::max(options.data.prefetch, 1),
          .max_held = memory.max_held,
          .allocator = memory.allocator};
}

std::unique_ptr<data::Loader> make_loader(const DataSources& sources, const TrainOptions& options,
                                          const comm::Topology& topology, const LoaderStart& start,
                                          const LoaderMemory& memory) {
  return std::make_unique<data::Loader>(loader_config(options, topology, start, memory),
                                        sources.train);
}

}  // namespace sidestream::launch
