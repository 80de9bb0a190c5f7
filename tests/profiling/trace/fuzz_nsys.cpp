// Exports of Nsight Systems out of any bytes: they may be refused with core::DataError, and nothing
// else. One in eight is analysed too, which takes several times as long.
#include <cstddef>
#include <cstdint>

#include "profiling/trace/nsys_reader.hpp"
#include "tests/profiling/trace/fuzz_analysis.hpp"
#include "tests/profiling/trace/fuzz_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const sidestream::test::FuzzFile file("nsys.sqlite");
  file.write(data, size);
  if (sidestream::test::is_one_in_eight(data, size)) {
    sidestream::test::read_and_analyse(file.path());
    return 0;
  }
  try {
    sidestream::trace::read_nsys(file.path());
  } catch (const sidestream::core::DataError&) {
  }
  return 0;
}
