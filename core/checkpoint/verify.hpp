// Is everything there that a manifest promises, bit for bit?
#pragma once

#include <filesystem>

#include "core/checkpoint/manifest.hpp"

namespace sidestream::checkpoint {

enum class VerifyDepth { kSizes, kHashes };

// Returns the manifest. Throws CheckpointError that names the first file that is missing, no
// regular file (links are refused), of another size or of another hash; NewerFormatError like
// read_manifest. Hashes several files at a time.
Manifest verify_checkpoint(const std::filesystem::path& folder,
                           VerifyDepth depth = VerifyDepth::kHashes);

}  // namespace sidestream::checkpoint
