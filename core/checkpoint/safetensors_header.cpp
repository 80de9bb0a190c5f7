#include "core/checkpoint/safetensors_header.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>

#include "core/base/error.hpp"
#include "core/checkpoint/safetensors_sax.hpp"

namespace sidestream::checkpoint {
namespace {

constexpr std::uint64_t kPrefixBytes = 8;

// Walks the JSON and leaves its position behind, so that an error can name the byte.
class TrackingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  TrackingIterator(const char* at, const char** position) : at_(at), position_(position) {}

  reference operator*() const { return *at_; }
  TrackingIterator& operator++() {
    *position_ = ++at_;
    return *this;
  }
  TrackingIterator operator++(int) {
    TrackingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const TrackingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  const char** position_;
};

class HeaderParser {
 public:
  HeaderParser(std::span<const std::byte> file, const std::filesystem::path& path)
      : file_(file), path_(path) {}

  SafetensorsHeader parse() {
    const std::uint64_t length = header_length();
    header_.data_offset = kPrefixBytes + length;
    parse_json({reinterpret_cast<const char*>(file_.data()) + kPrefixBytes,
                static_cast<std::size_t>(length)});
    std::sort(header_.tensors.begin(), header_.tensors.end(),
              [](const TensorEntry& a, const TensorEntry& b) {
                return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
              });
    for (const TensorEntry& entry : header_.tensors) check_size(entry);
    check_layout();
    return std::move(header_);
  }

 private:
  [[noreturn]] void fail(std::uint64_t offset_bytes, std::string expected,
                         std::string found) const {
    throw core::CheckpointError(core::FileFault{.file = path_.string(),
                                                .offset_bytes = offset_bytes,
                                                .expected = std::move(expected),
                                                .found = std::move(found)});
  }

  std::uint64_t header_length() const {
    if (file_.size() < kPrefixBytes) {
      fail(0, "8 bytes with the header's length",
           "a file of " + std::to_string(file_.size()) + " bytes");
    }
    std::uint64_t length = 0;  // little-endian, as the machine is
    std::memcpy(&length, file_.data(), sizeof length);
    if (length > kMaxHeaderBytes) {
      fail(0, "a header of at most " + std::to_string(kMaxHeaderBytes) + " bytes",
           std::to_string(length));
    }
    if (length > file_.size() - kPrefixBytes) {
      fail(0, "a header within the file of " + std::to_string(file_.size()) + " bytes",
           "a header of " + std::to_string(length) + " bytes");
    }
    return length;
  }

  void parse_json(std::string_view json) {
    if (json.empty() || json.front() != '{') {
      fail(kPrefixBytes, "'{'",
           json.empty() ? "an empty header" : "byte " + std::to_string(json.front() & 0xFF));
    }
    // The library takes a zero byte for the end of the input: bytes behind it would go unseen.
    if (const auto zero = json.find('\0'); zero != std::string_view::npos) {
      fail(kPrefixBytes + zero, "JSON text", "a zero byte");
    }
    const char* position = json.data();
    SafetensorsSax sax(header_);
    try {
      nlohmann::json::sax_parse(TrackingIterator(json.data(), &position),
                                TrackingIterator(json.data() + json.size(), &position), &sax);
    } catch (const SafetensorsSax::Fault& fault) {
      fail(kPrefixBytes + static_cast<std::uint64_t>(position - json.data()), fault.expected,
           fault.found);
    }
  }

  // Empty when the product does not fit 64 bits.
  static std::optional<std::uint64_t> bits_of_tensor(const TensorEntry& entry) {
    std::uint64_t bits = bits_of(entry.type);
    for (const std::uint64_t dimension : entry.shape) {
      if (__builtin_mul_overflow(bits, dimension, &bits)) return std::nullopt;
    }
    return bits;
  }

  void check_size(const TensorEntry& entry) const {
    const std::string name = "tensor '" + entry.name + "'";
    const auto bits = bits_of_tensor(entry);
    if (!bits)
      fail(kPrefixBytes, "a size of " + name + " below 2^64 bits",
           "a shape whose product is larger");
    if (*bits % 8 != 0)
      fail(kPrefixBytes, name + " in whole bytes", std::to_string(*bits) + " bits");
    if (entry.end < entry.begin) {
      fail(kPrefixBytes, "data_offsets of " + name + " in order",
           std::to_string(entry.begin) + " to " + std::to_string(entry.end));
    }
    if (entry.end - entry.begin != *bits / 8) {
      fail(kPrefixBytes, std::to_string(*bits / 8) + " bytes for " + name,
           std::to_string(entry.end - entry.begin) + " in its data_offsets");
    }
  }

  void check_layout() const {
    std::uint64_t end = 0;
    for (const TensorEntry& entry : header_.tensors) {
      if (entry.begin != end) {
        fail(kPrefixBytes,
             "tensor '" + entry.name + "' to begin at byte " + std::to_string(end) + " of the data",
             "data_offsets that begin at " + std::to_string(entry.begin));
      }
      end = entry.end;
    }
    const std::uint64_t available = file_.size() - header_.data_offset;
    if (end != available) {
      fail(header_.data_offset, std::to_string(end) + " bytes of data", std::to_string(available));
    }
  }

  std::span<const std::byte> file_;
  const std::filesystem::path& path_;
  SafetensorsHeader header_;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::span<const std::byte> file,
                                           const std::filesystem::path& path) {
  return HeaderParser(file, path).parse();
}

}  // namespace sidestream::checkpoint
