// Events of a trace, separated as JSON wants it, handed to the file in large pieces.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "profiling/trace/byte_sink.hpp"

namespace sidestream::launch {

class EventList {
 public:
  explicit EventList(trace::ByteSink& sink) : sink_(sink) {}

  void add(std::string_view event) {
    buffer_ += first_ ? "\n" : ",\n";
    buffer_ += event;
    first_ = false;
    if (buffer_.size() > kPiece) flush();
  }
  void flush() {
    sink_.write(buffer_);
    buffer_.clear();
  }

 private:
  static constexpr std::size_t kPiece = std::size_t{1} << 18;

  trace::ByteSink& sink_;
  std::string buffer_;
  bool first_ = true;
};

}  // namespace sidestream::launch
