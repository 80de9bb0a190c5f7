#include "profiling/trace/json_window.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/base/error.hpp"

namespace sidestream::trace {
namespace {

constexpr std::size_t kFirstWindow = std::size_t{1} << 18;

using CharacterSet = std::array<bool, 256>;

constexpr CharacterSet set_of(std::string_view characters) {
  CharacterSet set = {};
  for (const char one : characters) set[static_cast<unsigned char>(one)] = true;
  return set;
}

constexpr CharacterSet kStopsOutside = set_of("\"{}[]");
constexpr CharacterSet kEndsScalar = set_of(",]} \t\r\n:");
constexpr CharacterSet kSpace = set_of(" \t\r\n");

bool in(const CharacterSet& set, char one) { return set[static_cast<unsigned char>(one)]; }

// The high bit of the first byte that is 0; bits above it mean nothing.
constexpr std::uint64_t zero_bytes(std::uint64_t word) {
  return (word - 0x0101010101010101u) & ~word & 0x8080808080808080u;
}

// The next quote or backslash, eight bytes at a time: most of a trace is inside of strings. The
// quote behind the window ends it, and its padding may be read.
const char* string_stop(const char* at) {
  static_assert(std::endian::native == std::endian::little);
  constexpr std::uint64_t kQuotes = 0x2222222222222222u, kBackslashes = 0x5C5C5C5C5C5C5C5Cu;
  for (;; at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    const std::uint64_t stops = zero_bytes(word ^ kQuotes) | zero_bytes(word ^ kBackslashes);
    if (stops != 0) return at + std::countr_zero(stops) / 8;
  }
}

}  // namespace

JsonWindow::JsonWindow(ByteSource& source, std::string file)
    : source_(source), file_(std::move(file)), buffer_(kFirstWindow + kPadding) {
  refill(0);
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (std::string_view(buffer_.data(), end_).starts_with(kByteOrderMark))
    at_ = kByteOrderMark.size();
}

// Drops what lies before keep_from and appends; a quote behind the end stops every scan.
bool JsonWindow::refill(std::size_t keep_from) {
  const std::size_t kept = end_ - keep_from;
  std::memmove(buffer_.data(), buffer_.data() + keep_from, kept);
  base_offset_ += keep_from;
  at_ -= keep_from;
  end_ = kept;
  if (end_ + kPadding == buffer_.size()) buffer_.resize(2 * end_ + kPadding);
  const std::size_t got = source_.read(buffer_.data() + end_, buffer_.size() - kPadding - end_);
  end_ += got;
  std::memset(buffer_.data() + end_, ' ', kPadding);
  buffer_[end_] = '"';
  return got > 0;
}

char JsonWindow::peek() {
  for (;;) {
    while (at_ < end_ && in(kSpace, buffer_[at_])) ++at_;
    if (at_ < end_) return buffer_[at_];
    if (!refill(at_)) return 0;
  }
}

bool JsonWindow::scan_string(const char*& at, Scan& state) const {
  const char* const end = buffer_.data() + end_;
  if (state.escaped && at < end) {
    ++at;
    state.escaped = false;
  }
  for (;;) {
    at = string_stop(at);
    if (at >= end) return false;
    if (*at == '"') break;
    if (at + 1 >= end) {
      state.escaped = true;
      ++at;
      return false;
    }
    at += 2;
    if (at >= end) return false;
  }
  ++at;
  state.in_string = false;
  return true;
}

bool JsonWindow::scan(std::size_t& position, Scan& state) const {
  const char* at = buffer_.data() + position;
  const char* const end = buffer_.data() + end_;
  while (at < end) {
    if (state.in_string) {
      if (!scan_string(at, state)) break;
    } else {
      while (!in(kStopsOutside, *at)) ++at;
      if (at >= end) break;
      const char stop = *at++;
      state.in_string = stop == '"';
      state.depth += stop == '{' || stop == '[';
      state.depth -= stop == '}' || stop == ']';
      state.too_deep = state.too_deep || state.depth > kDeepest;
    }
    if (state.depth <= 0 && !state.in_string) {
      position = static_cast<std::size_t>(at - buffer_.data());
      return true;
    }
  }
  position = end_;
  return false;
}

bool JsonWindow::scan_scalar(std::size_t& position) const {
  while (position < end_ && !in(kEndsScalar, buffer_[position])) ++position;
  return position < end_;
}

JsonValue JsonWindow::take_value() {
  const char first = peek();
  const bool scalar = first != '"' && first != '{' && first != '[';
  JsonValue value;
  Scan state;
  std::size_t position = at_;
  while (!(scalar ? scan_scalar(position) : scan(position, state))) {
    value.too_large = value.too_large || end_ - at_ > kLargestValue;
    if (value.too_large) at_ = position;  // what was scanned is not needed any more
    position -= at_;
    if (!refill(at_)) {
      if (scalar) break;
      fail("the end of a JSON value", "the end of the file");
    }
  }
  value.too_deep = state.too_deep;
  if (!value.too_large && !value.too_deep) value.text = {buffer_.data() + at_, position - at_};
  at_ = position;
  return value;
}

void JsonWindow::fail(const std::string& expected, const std::string& found) const {
  throw core::DataError(core::FileFault{file_, offset(), expected, found});
}

}  // namespace sidestream::trace
