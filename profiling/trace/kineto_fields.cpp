#include "profiling/trace/kineto_fields.hpp"

#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "profiling/ranges/trace_metadata.hpp"
#include "profiling/trace/utf8_repair.hpp"

namespace sidestream::trace {
namespace {

namespace ondemand = simdjson::ondemand;
using Slot = std::string_view KinetoFields::*;

struct Key {
  std::string_view name;
  Slot slot;
};

// Looked up by first letter and length, then compared.
constexpr std::array<Key, 8> kEventKeys = {{{"ph", &KinetoFields::phase},
                                            {"cat", &KinetoFields::category},
                                            {"ts", &KinetoFields::time},
                                            {"dur", &KinetoFields::duration},
                                            {"pid", &KinetoFields::process},
                                            {"tid", &KinetoFields::thread},
                                            {"id", &KinetoFields::id},
                                            {"name", &KinetoFields::name}}};

constexpr std::array<Key, 46> kArgumentKeys = {{
    {"External id", &KinetoFields::external_id},
    {"external id", &KinetoFields::external_id},
    {"correlation", &KinetoFields::correlation},
    {"stream", &KinetoFields::stream},
    {"device", &KinetoFields::device},
    {"bytes", &KinetoFields::bytes},
    {"Bytes", &KinetoFields::memory_bytes},
    {"grid", &KinetoFields::grid},
    {"block", &KinetoFields::block},
    {"registers per thread", &KinetoFields::registers},
    {"shared memory", &KinetoFields::shared_memory},
    {"est. achieved occupancy %", &KinetoFields::occupancy},
    {"blocks per SM", &KinetoFields::blocks_per_sm},
    {"Sequence number", &KinetoFields::sequence},
    {"Input Dims", &KinetoFields::dimensions},
    {"Input dims", &KinetoFields::dimensions},
    {"Input type", &KinetoFields::types},
    {"Concrete Inputs", &KinetoFields::values},
    {"Call stack", &KinetoFields::stack},
    {"Module Hierarchy", &KinetoFields::module},
    {"Collective name", &KinetoFields::collective},
    {"In msg nelems", &KinetoFields::elements_in},
    {"Out msg nelems", &KinetoFields::elements_out},
    {"Group size", &KinetoFields::group_size},
    {"dtype", &KinetoFields::dtype},
    {"Process Group Name", &KinetoFields::group_name},
    {"Process Group Ranks", &KinetoFields::group_ranks},
    {"Seq", &KinetoFields::collective_sequence},
    {"sequence", &KinetoFields::collective_sequence},
    {"bucket", &KinetoFields::bucket},
    {"payload bytes", &KinetoFields::payload_bytes},
    {"Addr", &KinetoFields::address},
    {"Total Allocated", &KinetoFields::allocated},
    {"Total Reserved", &KinetoFields::reserved},
    {"Device Id", &KinetoFields::device_id},
    {"Device Type", &KinetoFields::device_type},
    {"name", &KinetoFields::label},
    {"stream id", &KinetoFields::stream},
    {"device id", &KinetoFields::device},
    {"size", &KinetoFields::bytes},
    {"Device id", &KinetoFields::device_id},
    {"Device type", &KinetoFields::device_type},
    {"Total allocated", &KinetoFields::allocated},
    {"Total reserved", &KinetoFields::reserved},
    {"Stream", &KinetoFields::stream},
    {ranges::kOpen, &KinetoFields::open},
}};

template <std::size_t Count>
class KeyIndex {
 public:
  explicit constexpr KeyIndex(const std::array<Key, Count>& keys) : keys_(keys) {
    for (auto& head : heads_) head = kEnd;
    for (std::size_t i = Count; i-- > 0;) {
      auto& head = heads_[bucket_of(keys[i].name)];
      next_[i] = head;
      head = static_cast<unsigned char>(i);
    }
  }

  const Key* find(std::string_view name) const {
    for (unsigned char i = heads_[bucket_of(name)]; i != kEnd; i = next_[i]) {
      if (keys_[i].name == name) return &keys_[i];
    }
    return nullptr;
  }

 private:
  static constexpr unsigned char kEnd = 255;
  static constexpr std::size_t bucket_of(std::string_view name) {
    return name.empty() ? 0 : (static_cast<unsigned char>(name[0]) * 7 + name.size()) % 128;
  }

  std::array<Key, Count> keys_;
  std::array<unsigned char, 128> heads_ = {};
  std::array<unsigned char, Count> next_ = {};
};

constexpr KeyIndex<8> kEventIndex(kEventKeys);
constexpr KeyIndex<46> kArgumentIndex(kArgumentKeys);

// Keys of these formats have no escapes; one that has is simply unknown.
std::string_view key_text(ondemand::raw_json_string key) {
  const char* const begin = key.raw();
  const char* end = begin;
  while (*end != '"') ++end;
  return {begin, static_cast<std::size_t>(end - begin)};
}

std::string_view without_quotes(std::string_view token) {
  while (!token.empty() && (token.back() == ' ' || token.back() == '\n' || token.back() == '\r' ||
                            token.back() == '\t'))
    token.remove_suffix(1);
  if (token.size() >= 2 && token.front() == '"' && token.back() == '"')
    token = token.substr(1, token.size() - 2);
  return token;
}

// Raw text of a value. False: broken.
bool take(ondemand::value value, std::string_view& text) {
  const std::string_view token = value.raw_json_token();
  if (token.empty()) return false;
  if (token.front() == '[') {
    ondemand::array array;
    if (value.get_array().get(array) != simdjson::SUCCESS) return false;
    return array.raw_json().get(text) == simdjson::SUCCESS;
  }
  if (token.front() != '{') text = without_quotes(token);
  return true;
}

// A text that people read: escapes resolved where there are any.
bool take_name(ondemand::value value, std::string_view& text) {
  if (!take(value, text)) return false;
  if (text.find('\\') == std::string_view::npos) return true;
  std::string_view resolved;
  if (value.get_string().get(resolved) == simdjson::SUCCESS) text = resolved;
  return true;
}

bool take_arguments(ondemand::value value, KinetoFields& fields) {
  ondemand::object object;
  if (value.get_object().get(object) != simdjson::SUCCESS) return true;  // "args": null or a list
  fields.has_arguments = true;
  for (auto item : object) {
    ondemand::field field;
    if (std::move(item).get(field) != simdjson::SUCCESS) return false;
    const Key* key = kArgumentIndex.find(key_text(field.key()));
    if (key != nullptr && !take(field.value(), fields.*(key->slot))) return false;
  }
  return true;
}

simdjson::padded_string_view padded(std::string_view text) {
  return simdjson::padded_string_view(text.data(), text.size(),
                                      text.size() + simdjson::SIMDJSON_PADDING);
}

bool take_event(ondemand::object object, KinetoFields& fields) {
  for (auto item : object) {
    ondemand::field field;
    if (std::move(item).get(field) != simdjson::SUCCESS) return false;
    const std::string_view name = key_text(field.key());
    if (name == "args") {
      if (!take_arguments(field.value(), fields)) return false;
      continue;
    }
    const Key* key = kEventIndex.find(name);
    if (key == nullptr) continue;
    const bool taken = key->slot == &KinetoFields::name ? take_name(field.value(), fields.name)
                                                        : take(field.value(), fields.*(key->slot));
    if (!taken) return false;
  }
  return true;
}

}  // namespace

struct KinetoDecoder::Parser {
  ondemand::parser parser;
  ondemand::parser numbers;  // of its own: what fields point into stays
  std::string repaired;

  simdjson::error_code parse(std::string_view text, KinetoFields& fields) {
    fields = {};
    ondemand::document document;
    if (const auto error = parser.iterate(padded(text)).get(document)) return error;
    ondemand::object object;
    if (const auto error = document.get_object().get(object)) return error;
    return take_event(object, fields) ? simdjson::SUCCESS : simdjson::TAPE_ERROR;
  }
};

void KinetoDecoder::visit_numbers(
    const std::function<void(std::string_view name, double value)>& visit) {
  ondemand::document document;
  ondemand::object arguments;
  if (parser_->numbers.iterate(padded(parsed_text_)).get(document) != simdjson::SUCCESS) return;
  if (document["args"].get_object().get(arguments) != simdjson::SUCCESS) return;
  for (auto item : arguments) {
    ondemand::field field;
    std::string_view name;
    double value = 0;
    if (std::move(item).get(field) != simdjson::SUCCESS) return;
    if (field.unescaped_key().get(name) != simdjson::SUCCESS) continue;
    if (field.value().get_double().get(value) != simdjson::SUCCESS) continue;
    if (std::isfinite(value)) visit(name, value);
  }
}

KinetoDecoder::KinetoDecoder() : parser_(std::make_unique<Parser>()) {}
KinetoDecoder::~KinetoDecoder() = default;

KinetoDecoder::Result KinetoDecoder::decode(std::string_view text, KinetoFields& fields) {
  parsed_text_ = text;
  const simdjson::error_code error = parser_->parse(text, fields);
  if (error == simdjson::SUCCESS) return Result::kDone;
  if (error != simdjson::UTF8_ERROR && error != simdjson::UNESCAPED_CHARS) return Result::kBroken;
  parser_->repaired = with_valid_utf8(text);
  // Where they separate tokens a blank does too; inside of a text JSON has no room for them.
  for (const char one : {'\n', '\r', '\t'}) std::ranges::replace(parser_->repaired, one, ' ');
  const std::size_t size = parser_->repaired.size();
  parser_->repaired.append(simdjson::SIMDJSON_PADDING, ' ');
  parsed_text_ = {parser_->repaired.data(), size};
  return parser_->parse(parsed_text_, fields) == simdjson::SUCCESS ? Result::kRepaired
                                                                   : Result::kBroken;
}

}  // namespace sidestream::trace
