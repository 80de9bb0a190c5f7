// Events of a trace, separated as JSON wants it, handed to the file in large pieces.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "profiling/trace/byte_sink.hpp"

namespace sidestream::trace {

class EventList {
 public:
  explicit EventList(ByteSink& sink) : sink_(sink) {}

  void add(std::string_view event) {
    buffer_ += count_++ == 0 ? "\n" : ",\n";
    buffer_ += event;
    if (buffer_.size() > kPiece) flush();
  }
  void flush() {
    sink_.write(buffer_);
    buffer_.clear();
  }
  std::uint64_t count() const noexcept { return count_; }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 18;

  ByteSink& sink_;
  std::string buffer_;
  std::uint64_t count_ = 0;
};

}  // namespace sidestream::trace
