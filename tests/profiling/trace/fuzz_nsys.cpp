// Nsight Systems reader against any bytes: it may refuse them with core::DataError, and nothing
// else.
#include <cstddef>
#include <cstdint>

#include "core/base/error.hpp"
#include "profiling/trace/nsys_reader.hpp"
#include "tests/profiling/trace/fuzz_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const sidestream::test::FuzzFile file("nsys.sqlite");
  file.write(data, size);
  try {
    sidestream::trace::read_nsys(file.path());
  } catch (const sidestream::core::DataError&) {
  }
  return 0;
}
