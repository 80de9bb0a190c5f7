// What a check has found, and what to do about it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sidestream::launch::doctor {

// Ordered: the higher the worse.
enum class Level {
  kOk,
  kNote,     // could be better, or is not known
  kWarning,  // training starts, and will be slow, short of something or hard to look into
  kError,    // training cannot start
};

struct Finding {
  std::string name = {};  // of the check: "shared-memory"
  Level level = Level::kOk;
  std::string found = {};
  std::string expected = {};  // never empty above kOk
  std::string remedy = {};    // never empty above kOk
  std::string where = {};     // ranks that it is about; empty: all
};

std::string_view name_of(Level level);  // "ok", "note", "warning", "error"

// The worst level; kOk without findings.
Level worst_of(const std::vector<Finding>& findings);

}  // namespace sidestream::launch::doctor
