// Manifests against any text, as it is and signed with the right hash of itself: they may be
// refused with core::CheckpointError, and nothing else.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/base/digest.hpp"
#include "core/base/error.hpp"
#include "core/checkpoint/manifest.hpp"

namespace {

// Without the right hash nothing behind it is ever reached.
std::string with_right_hash(std::string_view text) {
  nlohmann::json document = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!document.is_object()) return std::string(text);
  document.erase("sha256");
  document["sha256"] = sidestream::core::sha256_hex(document.dump());
  return document.dump();
}

void parse(std::string_view text) {
  try {
    sidestream::checkpoint::parse_manifest(text, "manifest.json");
  } catch (const sidestream::core::CheckpointError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  parse(text);
  parse(with_right_hash(text));
  try {
    sidestream::checkpoint::digests_from_text(text);
  } catch (const sidestream::core::CheckpointError&) {
  }
  return 0;
}
