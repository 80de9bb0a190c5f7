// StringIds of an export: kernel and function names by number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "profiling/trace/sqlite_file.hpp"

namespace sidestream::trace {

class NsysStrings {
 public:
  explicit NsysStrings(const SqliteFile& file);

  // "name N" for a number that the table lacks.
  std::string_view operator[](std::int64_t id);
  bool knows(std::int64_t id) const {
    const auto found = texts_.find(id);
    return found != texts_.end() && !found->second.empty() && !made_up_.contains(id);
  }
  // Numbers of the texts for which `wanted` is true.
  template <typename Wanted>
  std::vector<std::int64_t> ids_where(Wanted wanted) const {
    std::vector<std::int64_t> ids;
    for (const auto& [id, text] : texts_) {
      if (wanted(text)) ids.push_back(id);
    }
    return ids;
  }

 private:
  std::unordered_map<std::int64_t, std::string> texts_;
  std::unordered_set<std::int64_t> made_up_;
};

}  // namespace sidestream::trace
