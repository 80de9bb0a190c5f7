// Which files a user means, and what kind each of them is.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sidestream::trace {

enum class FileKind { kKineto, kNsysSqlite, kNsysReport };

struct TraceFile {
  std::filesystem::path path;
  FileKind kind = FileKind::kKineto;
  std::string window;  // name of its folder: step_00000012
};

struct FoundTraces {
  std::vector<TraceFile> files;
  // What folders hold beside these: files that may be traces too, by their names, and are left out
  // because others are named as profilers name theirs.
  std::vector<std::filesystem::path> left_out;
};

// Files stand as they are; a folder gives the traces inside it, in the order
// of their names. Throws core::DataError for a name that does not exist, an
// empty file, a file that is no trace, and a folder without traces; ConfigError for an empty name.
FoundTraces look_for_traces(const std::vector<std::filesystem::path>& paths);
// The files alone.
std::vector<TraceFile> find_traces(const std::vector<std::filesystem::path>& paths);

// Whether a folder that is given would have a file of this name read as a trace.
bool is_trace_name(const std::string& file_name);

// The rank that a file's name carries: rank-3, rank_3,
// r_3, or Sidestream's HOST_00003.12.pt.trace.json.
std::optional<int> rank_in_name(const std::string& file_name);

}  // namespace sidestream::trace
