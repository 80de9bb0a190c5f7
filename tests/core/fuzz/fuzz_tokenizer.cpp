// tokenizer.json against any text: it may be refused with core::DataError, and nothing else; one
// that is accepted encodes and decodes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/data/tokenizer.hpp"
#include "tests/profiling/trace/fuzz_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const sidestream::test::FuzzFile file("tokenizer.json");
  file.write(data, size);
  try {
    const auto tokenizer = sidestream::data::open_tokenizer(file.path().string());
    const auto ids = tokenizer->encode("the other <|endoftext|> text");
    tokenizer->decode(ids);
  } catch (const sidestream::core::DataError&) {
  }
  return 0;
}
