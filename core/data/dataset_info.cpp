#include "core/data/dataset_info.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/json_count.hpp"
#include "core/base/json_fault.hpp"
#include "core/base/shallow_json.hpp"
#include "core/data/token_shard.hpp"

namespace sidestream::data {
namespace {

using core::DataError;
using nlohmann::json;

constexpr int kSchema = 1;
constexpr std::size_t kMaxSkipped = 1000;
constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

json to_json(const SplitInfo& split) {
  json shards = json::array();
  for (const WrittenShard& shard : split.shards)
    shards.push_back({{"file", shard.file}, {"tokens", shard.tokens}});
  return {
      {"tokens", split.tokens}, {"files", split.files}, {"bytes", split.bytes}, {"shards", shards}};
}

template <typename T>
T count_in(const std::filesystem::path& folder, const json& object, const char* key) {
  return core::count_at<T>(object, key, [&](const std::string& expected, const std::string& found) {
    return DataError({(folder / DatasetInfo::kFileName).string(), {}, expected, found});
  });
}

SplitInfo split_of(const std::filesystem::path& folder, const json& value) {
  const auto count = [&](const json& object, const char* key) {
    return count_in<std::uint64_t>(folder, object, key);
  };
  SplitInfo split{.tokens = count(value, "tokens"),
                  .files = count(value, "files"),
                  .bytes = count(value, "bytes"),
                  .shards = {}};
  for (const json& shard : value.at("shards"))
    split.shards.push_back({shard.at("file"), count(shard, "tokens")});
  return split;
}

// A name inside the folder and nothing that leads out of it.
bool is_inside(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

std::string tokenizer_of(const std::filesystem::path& folder, const std::string& name) {
  if (name == "bytes") return name;
  if (is_inside(name)) return (folder / name).string();
  throw DataError({(folder / DatasetInfo::kFileName).string(),
                   {},
                   "`bytes` or a file of the folder as tokenizer",
                   "\"" + name + "\""});
}

DatasetInfo info_of(const std::filesystem::path& folder, const json& root) {
  DatasetInfo info{.tokenizer = tokenizer_of(folder, root.at("tokenizer").get<std::string>()),
                   .vocab_size = count_in<std::uint32_t>(folder, root, "vocab_size"),
                   .end_of_text = count_in<std::uint32_t>(folder, root, "end_of_text"),
                   .val_fraction = root.at("val_fraction"),
                   .seed = count_in<std::uint64_t>(folder, root, "seed"),
                   .train = split_of(folder, root.at("train")),
                   .validation = split_of(folder, root.at("val")),
                   .skipped = {},
                   .skipped_files = count_in<std::uint64_t>(folder, root, "skipped_files")};
  for (const json& entry : root.at("skipped"))
    info.skipped.push_back({entry.at("name"), entry.at("reason")});
  return info;
}

}  // namespace

void write_dataset_info(const std::filesystem::path& folder, const DatasetInfo& info) {
  const bool bytes = info.tokenizer == "bytes";
  json skipped = json::array();
  for (std::size_t i = 0; i < std::min(info.skipped.size(), kMaxSkipped); ++i) {
    skipped.push_back({{"name", info.skipped[i].name}, {"reason", info.skipped[i].reason}});
  }
  const json root{
      {"schema", kSchema},
      {"format", "llm.c"},
      {"tokenizer", bytes ? "bytes" : std::filesystem::path(info.tokenizer).filename().string()},
      {"vocab_size", info.vocab_size},
      {"end_of_text", info.end_of_text},
      {"val_fraction", info.val_fraction},
      {"seed", info.seed},
      {"train", to_json(info.train)},
      {"val", to_json(info.validation)},
      {"skipped_files", info.skipped_files},
      {"skipped", skipped}};
  // File names need not be UTF-8.
  const auto text = root.dump(2, ' ', false, json::error_handler_t::replace);
  core::write_file_atomically(folder / DatasetInfo::kFileName, text + "\n");
}

std::optional<DatasetInfo> read_dataset_info(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / DatasetInfo::kFileName;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  std::string text;
  try {
    text = core::read_file(path, kMaxBytes);
    const json root = core::parse_shallow_json(text);
    const int schema = count_in<int>(folder, root, "schema");
    if (schema != kSchema) {
      throw DataError(
          {path.string(), {}, "schema " + std::to_string(kSchema), std::to_string(schema)});
    }
    return info_of(folder, root);
  } catch (const json::exception& error) {
    throw DataError(core::json_fault(
        {.file = path.string(), .expected = "the JSON that `prepare` writes"}, text, error));
  } catch (const core::NestingError& error) {
    throw DataError({path.string(), {}, error.what(), "more"});
  } catch (const DataError&) {
    throw;
  } catch (const core::Error& error) {  // it cannot be read, or is larger than any
    throw DataError(error.what());
  }
}

void require_shards(const std::filesystem::path& folder, const SplitInfo& split) {
  for (const WrittenShard& listed : split.shards) {
    if (!is_inside(listed.file)) {
      throw DataError({(folder / DatasetInfo::kFileName).string(),
                       {},
                       "a file of the folder as shard",
                       "\"" + listed.file + "\""});
    }
    const std::filesystem::path path = folder / listed.file;
    std::error_code error;
    const bool is_there = std::filesystem::is_regular_file(path, error);
    const std::uint64_t tokens = is_there ? TokenShard(path).size() : 0;
    if (is_there && tokens == listed.tokens) continue;
    throw DataError({path.string(),
                     {},
                     "a shard of " + std::to_string(listed.tokens) + " tokens, as " +
                         DatasetInfo::kFileName + " says",
                     (is_there ? std::to_string(tokens) + " tokens" : std::string("no file")) +
                         "; bring it back, or remove the folder and make the data again with "
                         "`sidestream prepare`"});
  }
}

}  // namespace sidestream::data
