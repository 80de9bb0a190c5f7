// The index beside a shard of Megatron-LM: NAME.idx says what NAME.bin holds.
//
// "MMIDIDX\0\0", uint64 version 1, uint8 type of the ids, uint64 sequences, uint64 documents (the
// entries of the last table), then int32 lengths[sequences] in ids, int64 pointers[sequences] in
// bytes, int64 documents[documents]: numbers of sequences at which documents begin, the last one
// being the number of sequences; all little-endian. Modes of multimodal data may follow.
// https://github.com/NVIDIA/Megatron-LM (megatron/core/datasets/indexed_dataset.py)
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace sidestream::data {

struct MegatronIndex {
  std::size_t token_bytes = 0;  // 2 (uint16) or 4 (int32)
  std::uint64_t tokens = 0;     // of all sequences
  std::uint64_t sequences = 0;
  std::uint64_t documents = 0;
};

// The index file of NAME.bin: NAME.idx. May not be there.
std::filesystem::path megatron_index_of(const std::filesystem::path& shard);

// Checks every byte of the index against itself and against a shard of `shard_bytes`: the sequences
// have to follow one another without gaps and fill the shard, as Megatron-LM's own tools write it,
// because the shard is read as one stream. Throws DataError: file, offset, expected, found.
MegatronIndex read_megatron_index(const std::filesystem::path& path, std::uint64_t shard_bytes);

}  // namespace sidestream::data
