#include "core/checkpoint/safetensors_reader.hpp"

#include "core/base/error.hpp"

namespace sidestream::checkpoint {
namespace {

core::MappedFile map_or_throw(const std::filesystem::path& path) {
  try {
    return core::MappedFile(path);
  } catch (const core::Error& error) {
    throw core::CheckpointError(error.what());
  }
}

}  // namespace

core::DType TensorView::dtype() const {
  if (const auto dtype = to_dtype(type)) return *dtype;
  throw core::CheckpointError(core::FileFault{
      .file = std::string(file),
      .offset_bytes = {},
      .expected = "tensor '" + std::string(name) +
                  "' in a type that is computed with (F64, F32, F16, BF16, I64, I32, U16, U8)",
      .found = std::string(name_of(type))});
}

std::uint64_t TensorView::elements() const {
  std::uint64_t product = 1;  // the parser has checked that it fits
  for (const std::uint64_t dimension : shape) product *= dimension;
  return product;
}

SafetensorsReader::SafetensorsReader(const std::filesystem::path& path)
    : file_(map_or_throw(path)),
      path_text_(path.string()),
      header_(parse_safetensors_header(file_.bytes(), path)) {
  for (std::size_t i = 0; i < header_.tensors.size(); ++i)
    by_name_.emplace(header_.tensors[i].name, i);
}

TensorView SafetensorsReader::tensor(std::size_t index) const {
  const TensorEntry& entry = header_.tensors.at(index);
  return {
      .name = entry.name,
      .type = entry.type,
      .shape = entry.shape,
      .bytes = file_.bytes().subspan(header_.data_offset + entry.begin, entry.end - entry.begin),
      .file = path_text_};
}

bool SafetensorsReader::contains(std::string_view name) const {
  return by_name_.contains(std::string(name));
}

TensorView SafetensorsReader::at(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  if (found != by_name_.end()) return tensor(found->second);
  throw core::CheckpointError(
      core::FileFault{.file = path_text_,
                      .offset_bytes = {},
                      .expected = "a tensor named '" + std::string(name) + "'",
                      .found = std::to_string(size()) + " tensors of other names"});
}

}  // namespace sidestream::checkpoint
