// Kineto traces out of any bytes, read and analysed: they may be refused with core::DataError, and
// nothing else; of what is accepted every step's budget closes.
#include <cstddef>
#include <cstdint>

#include "tests/profiling/trace/fuzz_analysis.hpp"
#include "tests/profiling/trace/fuzz_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const sidestream::test::FuzzFile file("kineto.json");
  file.write(data, size);
  sidestream::test::read_and_analyse(file.path());
  return 0;
}
