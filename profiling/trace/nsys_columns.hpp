// What a table of an export has, asked before it is read.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "profiling/trace/sqlite_file.hpp"

namespace sidestream::trace {

// Without one of these columns a table says nothing that could be used.
using NsysColumns = std::initializer_list<const char*>;

inline bool has_all(const std::set<std::string>& columns, NsysColumns wanted) {
  return std::all_of(wanted.begin(), wanted.end(),
                     [&](const char* one) { return columns.contains(one); });
}

// Nothing about a table that is not there: it was not recorded.
inline void note_missing(const SqliteFile& file, const char* table, NsysColumns wanted,
                         std::vector<std::string>& warnings) {
  if (!file.has(table)) return;
  const auto columns = file.columns(table);
  for (const char* one : wanted) {
    if (!columns.contains(one))
      warnings.push_back(std::string(table) + " has no column " + one + ": it is not read");
  }
}

}  // namespace sidestream::trace
