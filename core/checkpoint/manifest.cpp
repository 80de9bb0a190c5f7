#include "core/checkpoint/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/base/digest.hpp"
#include "core/base/error.hpp"
#include "core/base/json_count.hpp"
#include "core/base/json_fault.hpp"
#include "core/base/shallow_json.hpp"
#include "core/checkpoint/newer_format_error.hpp"
#include "core/checkpoint/unreadable_error.hpp"

namespace sidestream::checkpoint {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "sidestream-checkpoint";
constexpr std::size_t kMaxManifestBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxFiles = 65536;
constexpr std::uint64_t kMaxCheckpointBytes = std::uint64_t{1} << 50;
constexpr std::size_t kHashDigits = 64;

[[noreturn]] void fail(const std::filesystem::path& path, std::string expected, std::string found) {
  throw core::CheckpointError(core::FileFault{.file = path.string(),
                                              .offset_bytes = {},
                                              .expected = std::move(expected),
                                              .found = std::move(found)});
}

json to_json(std::span<const FileDigest> files) {
  json list = json::array();
  for (const FileDigest& file : files) {
    list.push_back({{"name", file.name}, {"bytes", file.bytes}, {"sha256", file.sha256}});
  }
  return list;
}

bool is_hash(const std::string& text) {
  return text.size() == kHashDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

FileDigest file_from_json(const json& entry, const std::filesystem::path& path) {
  if (!entry.at("bytes").is_number_unsigned())
    fail(path, "a file size from 0", entry.at("bytes").dump());
  FileDigest file{.name = entry.at("name").get<std::string>(),
                  .bytes = entry.at("bytes").get<std::uint64_t>(),
                  .sha256 = entry.at("sha256").get<std::string>()};
  require_plain_name(file.name, path);
  if (!is_hash(file.sha256))
    fail(path, "64 hexadecimal digits for " + file.name, fmt::format("'{}'", file.sha256));
  return file;
}

std::vector<FileDigest> files_from_json(const json& list, const std::filesystem::path& path) {
  if (!list.is_array() || list.size() > kMaxFiles)
    fail(path, "a list of at most 65536 files", "another value");
  std::vector<FileDigest> files;
  std::set<std::string> names;
  std::uint64_t total_bytes = 0;
  for (const json& entry : list) {
    files.push_back(file_from_json(entry, path));
    if (!names.insert(files.back().name).second)
      fail(path, "each file once", files.back().name + " twice");
    if (__builtin_add_overflow(total_bytes, files.back().bytes, &total_bytes) ||
        total_bytes > kMaxCheckpointBytes) {
      fail(path, fmt::format("at most {} bytes in all files", kMaxCheckpointBytes), "more");
    }
  }
  return files;
}

json parse_shallow(std::string_view text, const std::filesystem::path& path) {
  try {
    return core::parse_shallow_json(text);
  } catch (const core::NestingError& error) {
    fail(path, error.what(), "more");
  } catch (const json::exception& error) {
    throw core::CheckpointError(
        core::json_fault({.file = path.string(), .expected = "a manifest in JSON"}, text, error));
  }
}

// Before the version is looked at, because a damaged manifest is skipped but a newer one is
// refused: the rule for this hash stays the same in all versions.
void check_own_hash(json& document, const std::filesystem::path& path) {
  if (!document.is_object() || document.value("format", json()) != kFormat) {
    fail(path, fmt::format("format \"{}\"", kFormat), "another document");
  }
  const json stored = document.value("sha256", json());
  document.erase("sha256");
  if (stored != core::sha256_hex(document.dump()))
    fail(path, "content that matches its sha256", "another content");
}

void check_version(const json& document, const std::filesystem::path& path) {
  const json version = document.value("format_version", json());
  if (!version.is_number_unsigned() || version < 1)
    fail(path, "a format_version from 1", version.dump());
  if (version <= kManifestVersion) return;
  throw NewerFormatError(core::FileFault{
      .file = path.string(),
      .offset_bytes = {},
      .expected = fmt::format("format_version {} or older", kManifestVersion),
      .found =
          version.dump() +
          "; a newer version wrote this checkpoint: use that version, or another run directory"});
}

Manifest manifest_from_json(const json& document, const std::filesystem::path& path) {
  const auto fault = [&](const std::string& expected, const std::string& found) {
    return core::CheckpointError(core::FileFault{
        .file = path.string(), .offset_bytes = {}, .expected = expected, .found = found});
  };
  Manifest manifest{.step = core::count_at<std::int64_t>(document, "step", fault),
                    .world_size = core::count_at<int>(document, "world_size", fault),
                    .files = files_from_json(document.at("files"), path),
                    .model = document.at("model"),
                    .training = document.at("training")};
  if (manifest.world_size < 1)
    fail(path, "a world_size from 1", std::to_string(manifest.world_size));
  return manifest;
}

}  // namespace

void require_plain_name(std::string_view name, const std::filesystem::path& path) {
  const auto is_letter_or_digit = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const bool plain = !name.empty() && name.size() <= 200 && is_letter_or_digit(name.front()) &&
                     std::all_of(name.begin(), name.end(), [&](char c) {
                       return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
                     });
  if (!plain || name == kManifestFile)
    fail(path, "a plain file name", fmt::format("'{}'", name.substr(0, 80)));
}

std::string manifest_text(const Manifest& manifest) {
  json document = {{"format", kFormat},
                   {"format_version", static_cast<std::uint64_t>(kManifestVersion)},
                   {"step", manifest.step},
                   {"world_size", manifest.world_size},
                   {"files", to_json(manifest.files)},
                   {"model", manifest.model},
                   {"training", manifest.training}};
  // Parsed once before it is hashed: what a reader will see, whatever types the caller's values
  // had.
  document = json::parse(document.dump());
  document["sha256"] = core::sha256_hex(document.dump());
  return document.dump(1) + "\n";
}

Manifest parse_manifest(std::string_view text, const std::filesystem::path& path) {
  json document = parse_shallow(text, path);
  check_own_hash(document, path);
  check_version(document, path);
  try {
    return manifest_from_json(document, path);
  } catch (const json::exception& error) {
    fail(path, "step, world_size, files, model and training", core::json_words(error));
  }
}

Manifest read_manifest(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kManifestFile;
  std::error_code error;
  const auto status = std::filesystem::symlink_status(path, error);
  if (status.type() == std::filesystem::file_type::none)
    throw UnreadableError(fmt::format("cannot read {}: {}", path.string(), error.message()));
  if (!std::filesystem::is_regular_file(status)) {
    fail(folder, "a complete checkpoint", "no manifest.json");
  }
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (!error && bytes > kMaxManifestBytes)
    fail(path, fmt::format("at most {} bytes", kMaxManifestBytes), fmt::format("{}", bytes));
  std::string text;
  try {
    text = core::read_file(path, kMaxManifestBytes);
  } catch (const core::Error& failure) {
    throw UnreadableError(failure.what());
  }
  return parse_manifest(text, path);
}

std::string digests_to_text(std::span<const FileDigest> files) { return to_json(files).dump(); }

std::vector<FileDigest> digests_from_text(std::string_view text) {
  const std::filesystem::path path = "digests of a rank's files";
  const json list = parse_shallow(text, path);
  try {
    return files_from_json(list, path);
  } catch (const json::exception& error) {
    fail(path, "name, bytes and sha256", core::json_words(error));
  }
}

}  // namespace sidestream::checkpoint
