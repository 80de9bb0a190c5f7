// The manifest of a checkpoint: written last, it says that everything else is there and what it
// must look like.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/checkpoint/hashed_file.hpp"

namespace sidestream::checkpoint {

inline constexpr std::string_view kManifestFile = "manifest.json";
inline constexpr std::int64_t kManifestVersion = 1;

struct Manifest {
  std::int64_t step = 0;
  int world_size = 1;
  std::vector<FileDigest> files = {};
  nlohmann::json model = nlohmann::json::object();  // fields that another run must share to load it
  nlohmann::json training =
      nlohmann::json::object();  // state of loader, schedule, random numbers, layout
};

// The text of manifest.json, with a hash of itself: a flipped bit in the training state is found as
// well.
std::string manifest_text(const Manifest& manifest);

// Throws CheckpointError for text that is no manifest, a hash that does not match, and names that
// are not plain file names (separators, "..", hidden); NewerFormatError for a version above ours.
// `path` is for messages only.
Manifest parse_manifest(std::string_view text, const std::filesystem::path& path);

// Reads FOLDER/manifest.json. Throws like parse_manifest, and CheckpointError when there is none.
Manifest read_manifest(const std::filesystem::path& folder);

// Digests as one line, for the exchange between ranks.
std::string digests_to_text(std::span<const FileDigest> files);
// Throws CheckpointError for text that digests_to_text did not make.
std::vector<FileDigest> digests_from_text(std::string_view text);

// A letter or digit first, then letters, digits, '.', '_', '-': nothing that leaves the folder.
// Throws CheckpointError.
void require_plain_name(std::string_view name, const std::filesystem::path& path);

}  // namespace sidestream::checkpoint
