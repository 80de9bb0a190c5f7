#include "launch/trace/profiled_sides.hpp"

#include <fmt/format.h>

namespace sidestream::launch {

std::string folder_name(const std::filesystem::path& input) {
  const std::filesystem::path folder = input.lexically_normal();
  const std::string name = (folder.has_filename() ? folder : folder.parent_path()).filename();
  return name.empty() || name == "."
             ? std::filesystem::absolute(input).lexically_normal().parent_path().filename().string()
             : name;
}

verify::Profiles profiles_of(const ExaminedRun& base, const ExaminedRun& fresh) {
  return {.base = verify::side_profile(base.inputs().front().string(), base.summary()),
          .fresh = verify::side_profile(fresh.inputs().front().string(), fresh.summary()),
          .change = verify::compare_traces(base.analysis(), fresh.analysis())};
}

void add_sides(page::DocumentParts& parts, ExaminedRun* base, ExaminedRun* fresh) {
  for (const auto& [side, run] : {std::pair("base", base), std::pair("new", fresh)}) {
    if (run == nullptr) continue;
    parts.runs.push_back(
        run->page_part(fmt::format("{}: {}", side, folder_name(run->inputs().front()))));
  }
}

}  // namespace sidestream::launch
