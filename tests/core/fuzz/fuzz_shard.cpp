// Token shards against any bytes, under a name that allows every format without an index: they may
// be refused with core::DataError, and nothing else; what is accepted can be read.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/error.hpp"
#include "core/data/token_shard.hpp"
#include "tests/profiling/trace/fuzz_file.hpp"

namespace {

// A temporary name ends in letters of its own: the shard is a link with the right one.
class NamedFile {
 public:
  NamedFile() : file_("shard") {
    link_ = file_.path().string() + ".nanogpt.bin";
    std::filesystem::create_symlink(file_.path(), link_);
  }
  ~NamedFile() { std::filesystem::remove(link_); }

  const sidestream::test::FuzzFile& file() const { return file_; }
  const std::filesystem::path& path() const { return link_; }

 private:
  sidestream::test::FuzzFile file_;
  std::filesystem::path link_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const NamedFile file;
  file.file().write(data, size);
  try {
    const sidestream::data::TokenShard shard(file.path());
    std::vector<std::int64_t> tokens(shard.size());
    shard.copy(0, tokens);
    const std::uint64_t first = shard.find_not_below(1000, 0, shard.size());
    if (first < shard.size() && tokens[first] < 1000) __builtin_trap();
  } catch (const sidestream::core::DataError&) {
  }
  return 0;
}
