// Small files and checkpoints for the tests of this folder.
#pragma once

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/checkpoint/checkpoint_store.hpp"
#include "core/checkpoint/checkpoint_writer.hpp"
#include "core/checkpoint/tensor_assignment.hpp"

namespace sidestream::checkpoint {

inline std::string file_with_header(const std::string& header, std::size_t data_bytes) {
  const std::uint64_t length = header.size();
  std::string file(sizeof length, '\0');
  std::memcpy(file.data(), &length, sizeof length);
  return file + header + std::string(data_bytes, 'd');
}

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// The message of the CheckpointError that the action throws; empty when it throws none.
inline std::string checkpoint_error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const core::CheckpointError& error) {
    return error.what();
  }
  return {};
}

// Values that follow from the step alone, so that a checkpoint's content can be checked.
inline std::vector<std::int64_t> values_of_step(std::int64_t step, std::size_t n) {
  std::vector<std::int64_t> values(n);
  std::iota(values.begin(), values.end(), step * 1'000'003);
  return values;
}

inline TensorSource source_of(const std::string& name, const std::vector<std::int64_t>& values) {
  return {.name = name,
          .dtype = core::DType::kInt64,
          .shape = {values.size()},
          .bytes = std::as_bytes(std::span(values))};
}

struct SampleSave {
  std::int64_t step = 1;
  int world_size = 3;
  std::size_t elements = 1000;
};

// What the ranks write between begin and commit: a model by rank 0, an optimizer shard with one
// tensor by each.
inline Manifest write_sample_files(const CheckpointStore& store, const SampleSave& save) {
  Manifest manifest{.step = save.step, .world_size = save.world_size};
  manifest.model = {{"layers", 2}, {"width", 64}};
  manifest.training = {{"sample", save.step * 8}, {"loss", 0.1 * static_cast<double>(save.step)}};
  const auto values = values_of_step(save.step, save.elements);
  for (int rank = 0; rank < save.world_size; ++rank) {
    CheckpointWriter writer(store.pending_folder(save.step));
    if (rank == 0) {
      writer.add_safetensors("model.safetensors", std::vector{source_of("weights", values)},
                             {{"format", "pt"}});
      writer.add_text("config.json", "{}\n");
    }
    writer.add_safetensors(optimizer_file_name(rank, save.world_size),
                           std::vector{source_of("moments." + std::to_string(rank), values)});
    for (const FileDigest& file : digests_from_text(digests_to_text(writer.files())))
      manifest.files.push_back(file);
  }
  return manifest;
}

inline void save_sample(const CheckpointStore& store, const SampleSave& save,
                        const CheckpointStore::Warn& warn = {}) {
  store.begin(save.step);
  store.commit(write_sample_files(store, save), warn);
}

// Changes one byte of a file in place.
inline void flip_bit(const std::filesystem::path& path, std::uint64_t offset_bytes,
                     unsigned bit = 0) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(offset_bytes));
  const char byte = static_cast<char>(file.get() ^ (1 << bit));
  file.seekp(static_cast<std::streamoff>(offset_bytes));
  file.put(byte);
}

}  // namespace sidestream::checkpoint
