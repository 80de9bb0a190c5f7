// A window that slides over a JSON text of any size and hands out one value after the other.
//
// It knows brackets and strings, nothing else: what is inside a value is for
// whoever parses it. A value above the limit is passed over without being held,
// so that neither a line of ten gigabytes nor a damaged file costs memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/trace/byte_source.hpp"

namespace sidestream::trace {

struct JsonValue {
  // Followed by at least JsonWindow::kPadding readable bytes; valid until the next call.
  std::string_view text;
  bool too_large = false;  // text is empty then
  bool too_deep = false;   // text is empty then
};

class JsonWindow {
 public:
  static constexpr std::size_t kPadding = 64;
  static constexpr std::size_t kLargestValue = std::size_t{16} << 20;
  static constexpr int kDeepest = 256;

  // `file` is for messages.
  JsonWindow(ByteSource& source, std::string file);

  // The next character that is no white space; 0 at the end of the text.
  char peek();
  // Passes over the character that peek() gave.
  void pass() { ++at_; }
  // The value that starts at peek(). Throws core::DataError when the text ends inside it.
  JsonValue take_value();
  // Position in the (unpacked) text.
  std::uint64_t offset() const noexcept { return base_offset_ + at_; }
  [[noreturn]] void fail(const std::string& expected, const std::string& found) const;

 private:
  struct Scan {
    int depth = 0;
    bool in_string = false;
    bool escaped = false;
    bool too_deep = false;
  };

  bool refill(std::size_t keep_from);
  // Moves `position` to behind the value and returns
  // true, or to the end of the window and returns false.
  bool scan(std::size_t& position, Scan& state) const;
  bool scan_string(const char*& at, Scan& state) const;
  bool scan_scalar(std::size_t& position) const;

  ByteSource& source_;
  std::string file_;
  std::vector<char> buffer_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::uint64_t base_offset_ = 0;
};

}  // namespace sidestream::trace
