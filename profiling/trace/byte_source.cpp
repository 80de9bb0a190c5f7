#include "profiling/trace/byte_source.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include <cerrno>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/file.hpp"

namespace sidestream::trace {
namespace {

class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(const std::filesystem::path& path)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (!file_) throw core::DataError(core::system_error_text("cannot open", path, errno));
  }

  std::size_t read(char* into, std::size_t capacity) override {
    for (;;) {
      const ssize_t got = ::read(file_.get(), into, capacity);
      if (got >= 0) return static_cast<std::size_t>(got);
      if (errno != EINTR)
        throw core::DataError(core::system_error_text("cannot read", path_, errno));
    }
  }

 private:
  std::filesystem::path path_;
  core::UniqueFd file_;
};

// Several members one after the other are one text, as gzip itself reads them.
class GzipSource final : public ByteSource {
 public:
  explicit GzipSource(const std::filesystem::path& path)
      : path_(path), packed_(path), input_(std::size_t{1} << 17) {
    constexpr int kGzipOnly = 16 + MAX_WBITS;
    if (inflateInit2(&stream_, kGzipOnly) != Z_OK)
      throw core::MemoryError("cannot start zlib for " + path.string());
  }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;
  ~GzipSource() override { inflateEnd(&stream_); }

  std::size_t read(char* into, std::size_t capacity) override {
    stream_.next_out = reinterpret_cast<Bytef*>(into);
    stream_.avail_out = static_cast<uInt>(capacity);
    while (!at_end_ && stream_.avail_out == capacity) step();
    return capacity - stream_.avail_out;
  }

 private:
  void step() {
    if (stream_.avail_in == 0 && !refill()) {
      if (inside_member_) fail("more compressed data", "the end of the file");
      at_end_ = true;
      return;
    }
    inside_member_ = true;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      inside_member_ = false;
      inflateReset(&stream_);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      fail("gzip data", stream_.msg == nullptr ? "damaged data" : stream_.msg);
    }
  }

  bool refill() {
    const std::size_t got = packed_.read(input_.data(), input_.size());
    consumed_ += got;
    stream_.next_in = reinterpret_cast<Bytef*>(input_.data());
    stream_.avail_in = static_cast<uInt>(got);
    return got > 0;
  }

  [[noreturn]] void fail(const std::string& expected, const std::string& found) const {
    throw core::DataError(
        core::FileFault{path_.string(), consumed_ - stream_.avail_in, expected, found});
  }

  std::filesystem::path path_;
  PlainSource packed_;
  std::vector<char> input_;
  z_stream stream_ = {};
  std::uint64_t consumed_ = 0;
  bool inside_member_ = false;
  bool at_end_ = false;
};

bool is_gzip(const std::filesystem::path& path) {
  PlainSource source(path);
  unsigned char magic[2] = {};
  const std::size_t got = source.read(reinterpret_cast<char*>(magic), sizeof magic);
  return got == sizeof magic && magic[0] == 0x1f && magic[1] == 0x8b;
}

}  // namespace

std::unique_ptr<ByteSource> open_byte_source(const std::filesystem::path& path) {
  if (is_gzip(path)) return std::make_unique<GzipSource>(path);
  return std::make_unique<PlainSource>(path);
}

}  // namespace sidestream::trace
