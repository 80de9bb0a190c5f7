#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "core/base/error.hpp"
#include "core/base/processors.hpp"
#include "core/base/standard_output.hpp"
#include "core/checkpoint/tensor_set.hpp"
#include "core/data/tokenizer.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/one_process.hpp"
#include "launch/generation/generated_text.hpp"
#include "launch/generation/text_generator.hpp"
#include "launch/options/generate_options.hpp"
#include "launch/process/tuning.hpp"
#include "launch/trainer/checkpoint_tensors.hpp"
#include "launch/trainer/model_folder.hpp"

namespace sidestream::launch {
namespace {

// A checkpoint or run directory of ours, or a folder of Hugging Face with config.json and
// model.safetensors.
std::filesystem::path folder_of(const std::filesystem::path& path) {
  std::vector<std::string> notes;
  const WeightsFolder weights = folder_of_weights(path, notes);
  for (const std::string& note : notes) core::print_remark(fmt::format("sidestream: {}\n", note));
  if (!weights.is_intact) require_intact(weights.folder);
  return weights.folder;
}

// Before memory is taken for what a wrong config.json describes.
void require_weights_for(const model::ModelConfig& config, const checkpoint::TensorSet& tensors,
                         const std::filesystem::path& folder) {
  std::uint64_t stored = 0;
  for (const std::string& name : tensors.names()) stored += tensors.at(name).elements();
  const auto described = static_cast<std::uint64_t>(model::parameter_count(config));
  if (stored >= described) return;
  throw core::CheckpointError(
      fmt::format("{}: config.json describes a model of {} parameters, model.safetensors holds {}",
                  folder.string(), described, stored));
}

std::shared_ptr<model::LanguageModel> load_model(const std::filesystem::path& folder) {
  const model::ModelConfig config = read_model_config(folder);
  const checkpoint::TensorSet tensors = checkpoint::TensorSet::open_model(folder);
  require_weights_for(config, tensors, folder);
  require_no_other_blocks(config, tensors, folder);
  auto model = model::make_language_model(config);
  for (const auto& parameter : model->named_parameters()) {
    copy_into(tensors.at(parameter.key()), {parameter.key(), parameter.value()});
  }
  return model;
}

// A vocabulary may be larger than the data's: what ends a text tells byte tokens from others then.
bool is_of_bytes(const std::filesystem::path& folder, std::int64_t vocab_size,
                 const data::Tokenizer& bytes) {
  if (vocab_size == bytes.vocab_size()) return true;
  return vocab_size > bytes.vocab_size() &&
         end_of_text_of(folder) == std::int64_t{bytes.end_of_text()};
}

// The tokenizer.json beside the weights; a model of byte tokens has none.
std::unique_ptr<const data::Tokenizer> tokenizer_of(const std::filesystem::path& folder,
                                                    std::int64_t vocab_size) {
  if (std::filesystem::exists(folder / "tokenizer.json")) {
    auto tokenizer = data::open_tokenizer((folder / "tokenizer.json").string());
    if (tokenizer->vocab_size() <= vocab_size) return tokenizer;
    throw core::CheckpointError(fmt::format(
        "{}: tokenizer.json: expected at most the {} tokens of config.json's vocab_size, found {}: "
        "it is not the tokenizer of these weights",
        folder.string(), vocab_size, tokenizer->vocab_size()));
  }
  auto bytes = data::open_tokenizer("bytes");
  if (is_of_bytes(folder, vocab_size, *bytes)) return bytes;
  throw core::CheckpointError(
      fmt::format("{} has no tokenizer.json, and its vocabulary of {} is not that of byte tokens "
                  "({}): copy the tokenizer.json of the training data into it",
                  folder.string(), vocab_size, bytes->vocab_size()));
}

// Where a text starts: the prompt, or the end of the text before.
std::vector<std::int64_t> starting_tokens(const data::Tokenizer& tokenizer,
                                          const std::string& prompt) {
  const std::vector<std::uint32_t> ids = tokenizer.encode(prompt);
  if (ids.empty()) return {tokenizer.end_of_text()};
  return {ids.begin(), ids.end()};
}

}  // namespace

int run_generate(const CommandCall& call) {
  require_one_process("generate");
  const GenerateOptions options = parse_generate_options(call.arguments);
  pin_and_set_threads(core::allowed_processors(), {}, options.threads);
  flush_denormals_on_all_threads(true);
  const std::filesystem::path folder = folder_of(options.checkpoint);
  const auto model = load_model(folder);
  const auto tokenizer = tokenizer_of(folder, model->config().vocab_size);
  std::vector<std::int64_t> tokens = starting_tokens(*tokenizer, options.prompt);
  Sampler sampler({.temperature = options.temperature,
                   .top_k = static_cast<int>(options.top_k),
                   .seed = options.seed});
  const auto end = tokenizer->find_end_of_text();
  GeneratedText text(isatty(STDOUT_FILENO) != 0 ? Reader::kTerminal : Reader::kFile);
  std::fputs(options.prompt.c_str(), stdout);
  const GenerationLimits limits{.tokens = options.tokens, .vocab_size = tokenizer->vocab_size()};
  generate_tokens(*model, sampler, tokens, limits, [&](std::int64_t token) {
    const auto id = static_cast<std::uint32_t>(token);
    if (id == end) return false;
    const std::string shown = text.next(tokenizer->decode({&id, 1}));
    std::fwrite(shown.data(), 1, shown.size(), stdout);
    std::fflush(stdout);
    return true;
  });
  std::fputc('\n', stdout);
  return 0;
}

}  // namespace sidestream::launch
