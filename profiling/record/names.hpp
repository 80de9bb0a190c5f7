// Names of ranges as numbers. Phases have fixed ones, a step carries its own number, and every
// other name is kept once in a table of bounded size: a run of a million steps needs no more memory
// than one of ten.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiling/ranges/phases.hpp"

namespace sidestream::record {

using NameId = std::uint64_t;

inline constexpr NameId kOtherName = 0;  // the table was full
inline constexpr NameId kStepBit = NameId{1} << 62;

constexpr NameId id_of(ranges::Phase phase) { return 1 + static_cast<NameId>(phase); }
constexpr bool is_phase(NameId name) { return name >= 1 && name <= ranges::kPhaseCount; }
constexpr ranges::Phase phase_of(NameId phase) { return static_cast<ranges::Phase>(phase - 1); }
constexpr ranges::Category category_of(NameId phase) {
  return ranges::info_of(phase_of(phase)).category;
}
constexpr bool is_step(NameId name) { return (name & kStepBit) != 0; }
constexpr std::int64_t step_of(NameId name) { return static_cast<std::int64_t>(name & ~kStepBit); }

class NameTable {
 public:
  static constexpr std::size_t kMostNames = 1 << 16;

  NameTable();

  // Locks; not for the hot path.
  NameId intern(std::string_view name);
  std::string text(NameId name) const;

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;  // by number
  std::unordered_map<std::string, NameId> numbers_;
};

}  // namespace sidestream::record
