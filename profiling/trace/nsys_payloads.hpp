// What Sidestream's collectives carry, in the exports of newer Nsight Systems: bucket, sequence and
// bytes, as JSON text (jsonText, jsonTextId) or as the bytes of an NVTX extended payload
// (binaryData, with its schema in NVTX_PAYLOAD_SCHEMA_ENTRIES). Older exports have none of them.
//
// The bytes, as found in exports of 2026: a head of 32 bytes (domain, 0, schema, 0 as 32 bits each,
// then the payload's size and its own with the head as 64 bits), then the payload.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "profiling/ranges/phases.hpp"
#include "profiling/trace/nsys_strings.hpp"
#include "profiling/trace/sqlite_file.hpp"

namespace sidestream::trace {

class NsysPayloads {
 public:
  NsysPayloads(const SqliteFile& file, NsysStrings& strings);

  // Columns of NVTX_EVENTS to select, three of them.
  static std::string columns_of(const std::set<std::string>& columns);
  // Of a row in which these columns begin at `first`. Nothing where there is none that can be read.
  std::optional<ranges::CollectivePayload> of(const SqliteRows& rows, int first) const;

 private:
  // Where a payload with this schema has its three numbers.
  using Offsets = std::array<std::optional<std::uint64_t>, 3>;

  std::optional<ranges::CollectivePayload> of_bytes(std::string_view bytes) const;

  NsysStrings& strings_;
  std::map<std::uint64_t, Offsets> schemas_;
};

}  // namespace sidestream::trace
