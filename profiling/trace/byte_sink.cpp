#include "profiling/trace/byte_sink.hpp"

#include <zlib.h>

#include <cerrno>
#include <system_error>

#include "core/base/error.hpp"
#include "core/base/file.hpp"

namespace sidestream::trace {

// zlib writes plain files too (mode T).
struct ByteSink::Stream {
  gzFile file = nullptr;

  ~Stream() {
    if (file != nullptr) gzclose(file);
  }
};

ByteSink::ByteSink(std::filesystem::path path)
    : path_(std::move(path)),
      partial_(path_.string() + ".partial"),
      stream_(std::make_unique<Stream>()) {
  constexpr const char* kFastGzip = "wb2";
  constexpr const char* kPlain = "wbT";
  stream_->file = gzopen(partial_.c_str(), path_.extension() == ".gz" ? kFastGzip : kPlain);
  if (stream_->file == nullptr)
    throw core::Error(core::system_error_text("cannot write", partial_, errno));
  gzbuffer(stream_->file, 1u << 18);
}

ByteSink::~ByteSink() {
  if (stream_->file == nullptr) return;
  stream_.reset();
  std::error_code ignored;
  std::filesystem::remove(partial_, ignored);
}

void ByteSink::write(std::string_view bytes) {
  if (bytes.empty()) return;
  if (gzwrite(stream_->file, bytes.data(), static_cast<unsigned>(bytes.size())) == 0)
    throw core::Error(core::system_error_text("cannot write", partial_, errno));
}

void ByteSink::finish() {
  const int result = gzclose(stream_->file);
  stream_->file = nullptr;
  if (result != Z_OK) {
    const std::string text = core::system_error_text("cannot write", partial_, errno);
    std::error_code ignored;
    std::filesystem::remove(partial_, ignored);
    throw core::Error(text);
  }
  std::filesystem::rename(partial_, path_);
}

}  // namespace sidestream::trace
