#include "profiling/trace/trace_files.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <regex>
#include <set>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/path_inside.hpp"
#include "profiling/trace/byte_source.hpp"
#include "profiling/trace/way_on.hpp"

namespace sidestream::trace {
namespace {

namespace fs = std::filesystem;

std::string head_of(const fs::path& path) {
  std::array<char, 64> head = {};
  const std::size_t got = open_byte_source(path)->read(head.data(), head.size());
  return {head.data(), got};
}

FileKind kind_of_file(const fs::path& path) {
  if (path.extension() == ".nsys-rep" || path.extension() == ".qdrep") return FileKind::kNsysReport;
  const std::string head = head_of(path);
  if (head.empty()) {
    throw core::DataError(core::FileFault{path.string(), 0, "a trace", "an empty file"});
  }
  if (head.starts_with("SQLite format 3")) return FileKind::kNsysSqlite;
  const std::size_t at = head.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (at != std::string::npos && (head[at] == '{' || head[at] == '[')) return FileKind::kKineto;
  throw core::DataError(core::FileFault{
      path.string(), 0, "a Kineto trace (JSON, also gzip) or an Nsight Systems export (SQLite)",
      "something else"});
}

TraceFile trace_file(const fs::path& path) {
  if (!fs::is_regular_file(path)) {
    throw core::DataError(core::FileFault{path.string(), std::nullopt, "a file or a folder",
                                          "a pipe, a socket or a device"});
  }
  return {path, kind_of_file(path), fs::absolute(path).parent_path().filename().string()};
}

bool ends_with_any(std::string_view name, std::initializer_list<std::string_view> ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}

// Traces as profilers name them; only without any of these
// are other files with a rank in their name looked at.
bool is_named_as_trace(const std::string& name) {
  return ends_with_any(name, {".pt.trace.json", ".pt.trace.json.gz", ".sqlite"});
}

bool is_nsys_report(const std::string& name) {
  return ends_with_any(name, {".nsys-rep", ".qdrep"});
}

// "my_trace.json.gz", "trace0.json", "trace-12.json", "step_00010.json"; or any JSON with a rank in
// its name.
bool may_be_trace(const std::string& name) {
  static const std::regex kTrace(R"((trace[-_.]?\d*|_\d{5})\.json(\.gz)?$)");
  return std::regex_search(name, kTrace) ||
         (ends_with_any(name, {".json", ".json.gz"}) && rank_in_name(name).has_value());
}

// What ranks leave behind when a collective hangs: JSON of each rank, and no traces.
constexpr const char* kFlights = "flight";

// Folders behind links are looked into once, and not at all where they lie in the folder itself and
// are found there: "newest" beside what it points to would be the same ranks twice.
class Branches {
 public:
  explicit Branches(const fs::path& root) : root_(fs::canonical(root)) {}

  bool are_new(const fs::directory_entry& folder) {
    std::error_code unreadable;
    const bool is_link = folder.is_symlink(unreadable);
    const fs::path place = fs::canonical(folder.path(), unreadable);
    if (unreadable) return !is_link;  // whoever looks into it is told why that cannot be
    if (is_link && core::is_inside(place, root_)) return false;
    return seen_.insert(place).second;
  }

 private:
  fs::path root_;
  std::set<fs::path> seen_;
};

std::vector<fs::path> traces_by_name(const fs::path& folder) {
  std::vector<fs::path> found;
  Branches branches(folder);
  fs::recursive_directory_iterator entries(folder, fs::directory_options::follow_directory_symlink);
  for (; entries != fs::recursive_directory_iterator(); ++entries) {
    const fs::directory_entry& entry = *entries;
    std::error_code unreadable;  // a link to nowhere, or to itself, is no trace
    const bool leads_on = entry.is_directory(unreadable);
    if (leads_on ? entry.path().filename() == kFlights || !branches.are_new(entry)
                 : entry.is_symlink(unreadable))
      entries.disable_recursion_pending();
    if (entry.is_regular_file(unreadable) && is_trace_name(entry.path().filename().string()))
      found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

bool has_export(const fs::path& report) {
  return is_nsys_report(report.filename().string()) &&
         fs::exists(fs::path(report).replace_extension(".sqlite"));
}

// Those named as profilers name theirs; without any, those that may be; without any, reports. The
// others go to `left_out`.
std::vector<fs::path> traces_in(const fs::path& folder, std::vector<fs::path>& left_out) {
  std::vector<fs::path> all = traces_by_name(folder);
  for (const auto wanted : {is_named_as_trace, may_be_trace, is_nsys_report}) {
    const auto others = std::stable_partition(all.begin(), all.end(), [&](const fs::path& one) {
      return wanted(one.filename().string());
    });
    if (others == all.begin()) continue;
    std::copy_if(others, all.end(), std::back_inserter(left_out), std::not_fn(has_export));
    all.erase(others, all.end());
    return all;
  }
  throw core::DataError(core::FileFault{
      folder.string(), std::nullopt,
      "traces (*.pt.trace.json, *trace.json, trace0.json, *rank0*.json, each also .gz, *.sqlite, "
      "*.nsys-rep)",
      "none: record some with `sidestream train --profile`, or name the files one by one"});
}

void add_traces(const fs::path& path, std::size_t given, FoundTraces& found) {
  if (!fs::exists(path)) {
    throw core::DataError(
        core::FileFault{path.string(), std::nullopt, "a file or a folder", "nothing there"});
  }
  if (!fs::is_directory(path)) {
    with_way_on(given, [&] { found.files.push_back(trace_file(path)); });
    return;
  }
  const std::vector<fs::path> inside = traces_in(path, found.left_out);
  for (const fs::path& one : inside)
    with_way_on(inside.size(), [&] { found.files.push_back(trace_file(one)); });
}

}  // namespace

bool is_trace_name(const std::string& file_name) {
  return is_named_as_trace(file_name) || may_be_trace(file_name) || is_nsys_report(file_name);
}

std::optional<int> rank_in_name(const std::string& file_name) {
  // HOST_PID.TIME of PyTorch's handler looks like our HOST_RANK.STEP: its time is longer. Digits
  // in another name are anything: step_00010.json.
  // The word comes first: r16 may be anything, of LoRA the size, say.
  static const std::array<std::regex, 2> kRanks = {
      std::regex(R"((?:^|[^a-z])rank[-_]?(\d{1,6})(?:[^0-9]|$))", std::regex::icase),
      std::regex(R"((?:^|[^a-z])r[-_]?(\d{1,6})(?:[^0-9]|$)|_(\d{5})(?:\.\d{1,11})?\.pt\.trace)",
                 std::regex::icase)};
  std::smatch match;
  for (const std::regex& rank : kRanks) {
    if (!std::regex_search(file_name, match, rank)) continue;
    const bool word_or_letter = match[1].matched;
    return std::stoi(word_or_letter ? match[1].str() : match[2].str());
  }
  return std::nullopt;
}

FoundTraces look_for_traces(const std::vector<fs::path>& paths) {
  FoundTraces found;
  for (const fs::path& path : paths) {
    if (path.empty())
      throw core::ConfigError("an empty name stands where a file or a folder is expected");
    try {
      add_traces(path, paths.size(), found);
    } catch (const fs::filesystem_error& error) {
      const fs::path& where = error.path1().empty() ? path : error.path1();
      throw core::DataError(core::FileFault{where.string(), std::nullopt,
                                            "a file or a folder that can be read",
                                            "'" + error.code().message() + "'"});
    }
  }
  return found;
}

std::vector<TraceFile> find_traces(const std::vector<fs::path>& paths) {
  return look_for_traces(paths).files;
}

}  // namespace sidestream::trace
