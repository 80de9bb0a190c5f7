// Event handler that turns the JSON of a safetensors header into entries; used by
// safetensors_header.cpp only.
//
// Events instead of a document: duplicate keys are seen, nothing nests deeper than the format
// allows, and a number is what was written (no float or negative number becomes a size).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>

#include "core/checkpoint/safetensors_header.hpp"

namespace sidestream::checkpoint {

class SafetensorsSax {
 public:
  using json = nlohmann::json;

  // What stopped the parser; thrown from the events, turned into a CheckpointError with the byte by
  // the caller.
  struct Fault {
    std::string expected;
    std::string found;
  };

  explicit SafetensorsSax(SafetensorsHeader& header) : header_(header) {}

  bool null() { return refuse_value("null"); }
  bool boolean(bool value) { return refuse_value(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) { return refuse_value(std::to_string(value)); }
  bool number_float(double, const std::string& text) { return refuse_value(text); }
  bool binary(json::binary_t&) { return refuse_value("binary data"); }
  bool number_unsigned(std::uint64_t value);
  bool string(std::string& value);
  bool start_object(std::size_t);
  bool key(std::string& name);
  bool end_object();
  bool start_array(std::size_t);
  bool end_array();
  bool parse_error(std::size_t, const std::string& token, const nlohmann::detail::exception& error);

 private:
  // Where the parser is; the field says which value of a tensor comes next.
  enum class Place { kStart, kTop, kTensor, kMetadata, kList, kDone };
  enum class Field { kNone, kType, kShape, kOffsets };

  [[noreturn]] void fail(std::string expected, std::string found) const;
  [[noreturn]] bool refuse_value(const std::string& found) const;
  std::string wanted() const;
  void begin_entry(const std::string& name);
  void begin_field(const std::string& name);

  SafetensorsHeader& header_;
  Place place_ = Place::kStart;
  Field field_ = Field::kNone;
  std::string last_key_;
  bool metadata_seen_ = false;
  bool has_type_ = false;
  bool has_shape_ = false;
  bool has_offsets_ = false;
  TensorEntry entry_;
  std::vector<std::uint64_t> list_;
  std::unordered_set<std::string> names_;
};

}  // namespace sidestream::checkpoint
