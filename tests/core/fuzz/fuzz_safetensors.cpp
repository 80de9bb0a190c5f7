// Safetensors reader against any bytes: it may refuse them with core::CheckpointError, and nothing
// else; what it accepts can be read to the last byte.
#include <cstddef>
#include <cstdint>

#include "core/base/error.hpp"
#include "core/checkpoint/safetensors_reader.hpp"
#include "tests/profiling/trace/fuzz_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const sidestream::test::FuzzFile file("model.safetensors");
  file.write(data, size);
  try {
    const sidestream::checkpoint::SafetensorsReader reader(file.path());
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < reader.size(); ++i) {
      for (const std::byte byte : reader.tensor(i).bytes) sum += static_cast<std::uint64_t>(byte);
    }
    if (sum > 255 * size) __builtin_trap();
  } catch (const sidestream::core::CheckpointError&) {
  }
  return 0;
}
