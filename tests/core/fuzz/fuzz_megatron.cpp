// Indexes of Megatron-LM against any bytes; the first two are the size of the shard. They may be
// refused with core::DataError, and nothing else; what is accepted fits the shard.
#include <cstddef>
#include <cstdint>

#include "core/base/error.hpp"
#include "core/data/megatron_index.hpp"
#include "tests/profiling/trace/fuzz_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  static const sidestream::test::FuzzFile file("index");
  const std::uint64_t shard_bytes = data[0] + 256U * data[1];
  file.write(data + 2, size - 2);
  try {
    const auto index = sidestream::data::read_megatron_index(file.path(), shard_bytes);
    if (index.tokens * index.token_bytes != shard_bytes) __builtin_trap();
  } catch (const sidestream::core::DataError&) {
  }
  return 0;
}
