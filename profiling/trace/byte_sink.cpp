#include "profiling/trace/byte_sink.hpp"

#include <zlib.h>

#include <cerrno>
#include <new>
#include <system_error>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/open_file.hpp"

namespace sidestream::trace {

namespace fs = std::filesystem;

// What removes leftovers of killed runs knows it.
constexpr const char* kEnding = ".partial";

// zlib writes plain files too (mode T).
struct ByteSink::Stream {
  gzFile file = nullptr;

  ~Stream() {
    if (file != nullptr) gzclose(file);
  }
};

ByteSink::ByteSink(std::filesystem::path path)
    : path_(std::move(path)),
      partial_(core::is_stream(path_) ? path_
                                      : fs::path(core::temporary_beside(path_).string() + kEnding)),
      stream_(std::make_unique<Stream>()) {
  constexpr const char* kFastGzip = "wb2";
  constexpr const char* kPlain = "wbT";
  const char* mode = path_.extension() == ".gz" ? kFastGzip : kPlain;
  core::UniqueFd fd =
      partial_ == path_ ? core::open_stream(path_) : core::create_new(partial_, path_);
  stream_->file = gzdopen(fd.get(), mode);
  if (stream_->file == nullptr) {
    drop_partial();
    throw std::bad_alloc();  // all that it can fail for
  }
  fd.release();  // the stream closes it
  gzbuffer(stream_->file, 1u << 18);
}

ByteSink::~ByteSink() {
  if (stream_->file == nullptr) return;
  stream_.reset();
  drop_partial();
}

void ByteSink::drop_partial() noexcept {
  std::error_code ignored;
  if (partial_ != path_) fs::remove(partial_, ignored);
}

void ByteSink::write(std::string_view bytes) {
  if (bytes.empty()) return;
  if (gzwrite(stream_->file, bytes.data(), static_cast<unsigned>(bytes.size())) == 0)
    core::fail_to_write("cannot write", path_);
}

void ByteSink::finish() {
  const int result = gzclose(stream_->file);
  stream_->file = nullptr;
  if (result != Z_OK) {
    const std::string text = core::system_error_text("cannot write", path_, errno);
    drop_partial();
    throw core::Error(text, core::ExitCode::kConfig);
  }
  if (partial_ == path_) return;
  std::error_code error;
  fs::rename(partial_, path_, error);
  if (!error) return;
  drop_partial();
  throw core::Error("cannot write " + path_.string() + ": " + error.message(),
                    core::ExitCode::kConfig);
}

}  // namespace sidestream::trace
