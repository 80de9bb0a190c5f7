#include "profiling/trace/nsys_payloads.hpp"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

namespace sidestream::trace {
namespace {

using Json = nlohmann::json;
using ranges::CollectivePayload;

constexpr std::array<const char*, 3> kNames = {"bucket", "sequence", "bytes"};
constexpr std::size_t kHead = 32, kSchemaAt = 8;

std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  std::uint64_t number = 0;  // both of them little-endian
  std::memcpy(&number, bytes.data() + at, size);
  return number;
}

CollectivePayload payload_of(const std::array<std::int64_t, 3>& numbers) {
  return {.bucket = numbers[0], .sequence = numbers[1], .bytes = numbers[2]};
}

// The object may be the payload, or hold it under the name of its schema.
std::optional<CollectivePayload> payload_in(const Json& value, int depth = 0) {
  constexpr int kDeepest = 4;
  if (!value.is_object() || depth > kDeepest) return std::nullopt;
  std::array<std::int64_t, 3> numbers = {};
  const bool complete = std::all_of(kNames.begin(), kNames.end(), [&](const char* name) {
    const auto found = value.find(name);
    if (found == value.end() || !found->is_number_integer()) return false;
    numbers[static_cast<std::size_t>(std::find(kNames.begin(), kNames.end(), name) -
                                     kNames.begin())] = found->get<std::int64_t>();
    return true;
  });
  if (complete) return payload_of(numbers);
  for (const Json& inner : value) {
    if (const auto found = payload_in(inner, depth + 1)) return found;
  }
  return std::nullopt;
}

std::optional<CollectivePayload> payload_in(std::string_view text) {
  if (text.empty() || text.front() != '{') return std::nullopt;
  return payload_in(Json::parse(text, nullptr, false));
}

int digit_of(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  return letter >= 'A' && letter <= 'F' ? letter - 'A' + 10 : -1;
}

// A column of texts holds bytes as pairs of digits.
std::string without_digits(std::string_view text) {
  if (text.size() % 2 != 0 ||
      std::any_of(text.begin(), text.end(), [](char one) { return digit_of(one) < 0; }))
    return std::string(text);
  std::string bytes;
  for (std::size_t i = 0; i < text.size(); i += 2)
    bytes += static_cast<char>(digit_of(text[i]) * 16 + digit_of(text[i + 1]));
  return bytes;
}

}  // namespace

NsysPayloads::NsysPayloads(const SqliteFile& file, NsysStrings& strings) : strings_(strings) {
  constexpr const char* kTable = "NVTX_PAYLOAD_SCHEMA_ENTRIES";
  if (!file.has(kTable)) return;
  const auto columns = file.columns(kTable);
  for (const char* wanted : {"schemaId", "name", "offset"}) {
    if (!columns.contains(wanted)) return;
  }
  SqliteRows rows = file.query("SELECT schemaId, name, \"offset\" FROM " + std::string(kTable));
  while (rows.next()) {
    const auto name = std::find(kNames.begin(), kNames.end(), rows.text(1));
    if (name == kNames.end()) continue;
    // The offset of the first entry may be missing: it is 0.
    schemas_[static_cast<std::uint64_t>(rows.integer(0))]
            [static_cast<std::size_t>(name - kNames.begin())] =
                static_cast<std::uint64_t>(rows.integer(2));
  }
}

std::string NsysPayloads::columns_of(const std::set<std::string>& columns) {
  return SqliteFile::first_of(columns, {"jsonText"}) + ", " +
         SqliteFile::first_of(columns, {"jsonTextId"}) + ", " +
         SqliteFile::first_of(columns, {"binaryData"});
}

std::optional<CollectivePayload> NsysPayloads::of(const SqliteRows& rows, int first) const {
  if (const auto found = payload_in(rows.text(first))) return found;
  if (!rows.is_null(first + 1)) {
    if (const auto found = payload_in(strings_[rows.integer(first + 1)])) return found;
  }
  if (rows.is_null(first + 2)) return std::nullopt;
  return of_bytes(without_digits(rows.bytes(first + 2)));
}

std::optional<CollectivePayload> NsysPayloads::of_bytes(std::string_view bytes) const {
  if (bytes.size() < kHead) return std::nullopt;
  const auto schema = schemas_.find(number_at(bytes, kSchemaAt, sizeof(std::uint32_t)));
  if (schema == schemas_.end()) return std::nullopt;
  std::array<std::int64_t, 3> numbers = {};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto& offset = schema->second[i];
    if (!offset || *offset > bytes.size() - kHead ||
        bytes.size() - kHead - *offset < sizeof(std::int64_t))
      return std::nullopt;
    numbers[i] = static_cast<std::int64_t>(number_at(bytes, kHead + *offset, sizeof(std::int64_t)));
  }
  return payload_of(numbers);
}

}  // namespace sidestream::trace
