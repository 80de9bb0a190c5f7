#include "core/checkpoint/safetensors_sax.hpp"

#include <fmt/format.h>

#include <utility>

namespace sidestream::checkpoint {
namespace {

constexpr std::string_view kMetadataKey = "__metadata__";
constexpr std::size_t kShownBytes = 80;

std::string shown(std::string_view text) {
  if (text.size() <= kShownBytes) return fmt::format("'{}'", text);
  return fmt::format("'{}...'", text.substr(0, kShownBytes));
}

}  // namespace

void SafetensorsSax::fail(std::string expected, std::string found) const {
  throw Fault{.expected = std::move(expected), .found = std::move(found)};
}

bool SafetensorsSax::refuse_value(const std::string& found) const { fail(wanted(), found); }

std::string SafetensorsSax::wanted() const {
  switch (place_) {
    case Place::kStart:
      return "a JSON object";
    case Place::kTop:
      return "an object for " + shown(last_key_);
    case Place::kMetadata:
      return "a string for " + shown(last_key_) + " of __metadata__";
    case Place::kTensor:
      return std::string(field_ == Field::kType ? "a string" : "an array") + " for " +
             shown(last_key_) + " of tensor " + shown(entry_.name);
    case Place::kList:
      return "whole numbers from 0 in " + shown(last_key_) + " of tensor " + shown(entry_.name);
    case Place::kDone:
      return "the end of the header";
  }
  return "a valid header";
}

bool SafetensorsSax::number_unsigned(std::uint64_t value) {
  if (place_ != Place::kList) refuse_value(std::to_string(value));
  const std::size_t limit = field_ == Field::kShape ? kMaxRank : 2;
  if (list_.size() == limit) {
    fail("at most " + std::to_string(limit) + " numbers in " + shown(last_key_) + " of tensor " +
             shown(entry_.name),
         "more");
  }
  list_.push_back(value);
  return true;
}

bool SafetensorsSax::string(std::string& value) {
  if (place_ == Place::kMetadata) {
    header_.metadata[last_key_] = std::move(value);
    return true;
  }
  if (place_ != Place::kTensor || field_ != Field::kType)
    refuse_value("the string " + shown(value));
  const auto type = parse_element_type(value);
  if (!type) fail("a known dtype for tensor " + shown(entry_.name), shown(value));
  entry_.type = *type;
  return true;
}

bool SafetensorsSax::start_object(std::size_t) {
  if (place_ == Place::kStart) {
    place_ = Place::kTop;
  } else if (place_ == Place::kTop) {
    place_ = last_key_ == kMetadataKey ? Place::kMetadata : Place::kTensor;
  } else {
    refuse_value("an object");
  }
  return true;
}

bool SafetensorsSax::key(std::string& name) {
  last_key_ = name;
  if (place_ == Place::kTop) {
    begin_entry(name);
  } else if (place_ == Place::kMetadata) {
    if (header_.metadata.contains(name))
      fail("each key of __metadata__ once", shown(name) + " twice");
  } else {
    begin_field(name);
  }
  return true;
}

void SafetensorsSax::begin_entry(const std::string& name) {
  if (name == kMetadataKey) {
    if (std::exchange(metadata_seen_, true)) fail("__metadata__ once", "it twice");
    return;
  }
  if (name.empty() || name.size() > kMaxNameBytes) {
    fail("a tensor name of 1 to " + std::to_string(kMaxNameBytes) + " bytes",
         std::to_string(name.size()) + " bytes: " + shown(name));
  }
  if (names_.size() == kMaxTensors)
    fail("at most " + std::to_string(kMaxTensors) + " tensors", "more");
  if (!names_.insert(name).second) fail("each tensor name once", shown(name) + " twice");
  entry_ = {.name = name};
  has_type_ = has_shape_ = has_offsets_ = false;
}

void SafetensorsSax::begin_field(const std::string& name) {
  bool seen = false;
  if (name == "dtype") {
    field_ = Field::kType;
    seen = std::exchange(has_type_, true);
  } else if (name == "shape") {
    field_ = Field::kShape;
    seen = std::exchange(has_shape_, true);
  } else if (name == "data_offsets") {
    field_ = Field::kOffsets;
    seen = std::exchange(has_offsets_, true);
  } else {
    fail("dtype, shape or data_offsets in tensor " + shown(entry_.name), shown(name));
  }
  if (seen) fail("each field of tensor " + shown(entry_.name) + " once", shown(name) + " twice");
}

bool SafetensorsSax::end_object() {
  if (place_ == Place::kTop) {
    place_ = Place::kDone;
    return true;
  }
  if (place_ == Place::kTensor) {
    if (!has_type_ || !has_shape_ || !has_offsets_) {
      const char* missing = !has_type_ ? "dtype" : !has_shape_ ? "shape" : "data_offsets";
      fail("dtype, shape and data_offsets in tensor " + shown(entry_.name),
           std::string("no ") + missing);
    }
    header_.tensors.push_back(std::move(entry_));
  }
  place_ = Place::kTop;
  return true;
}

bool SafetensorsSax::start_array(std::size_t) {
  if (place_ != Place::kTensor || field_ == Field::kType) refuse_value("an array");
  place_ = Place::kList;
  list_.clear();
  return true;
}

bool SafetensorsSax::end_array() {
  place_ = Place::kTensor;
  if (field_ == Field::kShape) {
    entry_.shape = list_;
    return true;
  }
  if (list_.size() != 2) {
    fail("two data_offsets for tensor " + shown(entry_.name), std::to_string(list_.size()));
  }
  entry_.begin = list_[0];
  entry_.end = list_[1];
  return true;
}

bool SafetensorsSax::parse_error(std::size_t, const std::string& token,
                                 const nlohmann::detail::exception& error) {
  fail("valid JSON in UTF-8", "after '" + token.substr(0, kShownBytes) + "': " + error.what());
}

}  // namespace sidestream::checkpoint
