#include "core/checkpoint/safetensors_writer.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "core/base/error.hpp"
#include "core/checkpoint/safetensors_header.hpp"

namespace sidestream::checkpoint {
namespace {

using nlohmann::json;

void check_source(const TensorSource& tensor) {
  if (tensor.name.empty() || tensor.name.size() > kMaxNameBytes || tensor.name == "__metadata__") {
    throw core::CheckpointError("safetensors: not a usable name for a tensor: '" + tensor.name +
                                "'");
  }
  if (tensor.shape.size() > kMaxRank) {
    throw core::CheckpointError("safetensors: tensor '" + tensor.name + "' has " +
                                std::to_string(tensor.shape.size()) + " dimensions, at most " +
                                std::to_string(kMaxRank) + " are read back");
  }
  std::uint64_t bytes = core::size_of(tensor.dtype);
  bool fits = true;
  for (const std::uint64_t dimension : tensor.shape)
    fits = fits && !__builtin_mul_overflow(bytes, dimension, &bytes);
  if (fits && bytes == tensor.bytes.size()) return;
  throw core::CheckpointError("safetensors: tensor '" + tensor.name + "': expected " +
                              std::to_string(bytes) + " bytes for its shape and type, found " +
                              std::to_string(tensor.bytes.size()));
}

std::vector<const TensorSource*> checked_layout(std::span<const TensorSource> tensors) {
  std::unordered_set<std::string_view> names;
  std::vector<const TensorSource*> order;
  for (const TensorSource& tensor : tensors) {
    check_source(tensor);
    if (!names.insert(tensor.name).second) {
      throw core::CheckpointError("safetensors: two tensors are named '" + tensor.name + "'");
    }
    order.push_back(&tensor);
  }
  std::stable_sort(order.begin(), order.end(), [](const TensorSource* a, const TensorSource* b) {
    return core::size_of(a->dtype) > core::size_of(b->dtype);
  });
  return order;
}

std::string dumped(const json& header) {
  try {
    return header.dump();
  } catch (const json::exception& error) {
    throw core::CheckpointError(
        std::string("safetensors: a name or a metadata text is not UTF-8: ") + error.what());
  }
}

// The length in 8 little-endian bytes and the JSON, padded with spaces so that the data begins
// aligned.
std::string header_text(std::span<const TensorSource* const> order, const Metadata& metadata) {
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::uint64_t offset = 0;
  for (const TensorSource* tensor : order) {
    header[tensor->name] = {{"dtype", std::string(name_of(to_element_type(tensor->dtype)))},
                            {"shape", tensor->shape},
                            {"data_offsets", {offset, offset + tensor->bytes.size()}}};
    offset += tensor->bytes.size();
  }
  std::string text = dumped(header);
  text.append((8 - text.size() % 8) % 8, ' ');
  if (text.size() > kMaxHeaderBytes) {
    throw core::CheckpointError("safetensors: a header of " + std::to_string(text.size()) +
                                " bytes is more than the format allows");
  }
  const std::uint64_t length = text.size();
  std::string prefix(sizeof length, '\0');
  std::memcpy(prefix.data(), &length, sizeof length);
  return prefix + text;
}

}  // namespace

FileDigest write_safetensors(const std::filesystem::path& path,
                             std::span<const TensorSource> tensors, const Metadata& metadata) {
  const auto order = checked_layout(tensors);
  const std::string header = header_text(order, metadata);
  HashedFile file(path);
  file.write(header);
  for (const TensorSource* tensor : order) file.write(tensor->bytes);
  return file.finish();
}

}  // namespace sidestream::checkpoint
