#include "profiling/verify/how_made.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <sstream>

#include "profiling/report/wrap.hpp"

namespace sidestream::verify {
namespace {

constexpr const char* kBuild = "build";  // of the environment: several lines

// "Sidestream 0.1.0", "backend: mpi", ...
std::vector<std::string> facts_of(const HowMade& how) {
  std::vector<std::string> lines;
  if (!how.version.empty()) lines.push_back("Sidestream " + how.version);
  for (const auto& [name, value] : how.environment) {
    if (name != kBuild) lines.push_back(fmt::format("{}: {}", name, value));
  }
  return lines;
}

std::string build_of(const HowMade& how) {
  const auto found = how.environment.find(kBuild);
  return found == how.environment.end() ? "" : found->second;
}

}  // namespace

std::string markdown_of(const HowMade& how) {
  std::string text =
      fmt::format("## How it was made\n\n```\n{}\n```\n\n", fmt::join(how.commands, "\n\n"));
  for (const std::string& line : facts_of(how)) text += "- " + line + "\n";
  const std::string build = build_of(how);
  if (!build.empty()) text += "\n```\n" + build + "```\n";
  return text;
}

std::string text_of(const HowMade& how, std::size_t width_columns) {
  std::string text = "How it was made\n";
  const auto add = [&](const std::string& line) {
    text += report::wrapped("  " + line, width_columns, 4);
  };
  for (const std::string& command : how.commands) add(command);
  for (const std::string& line : facts_of(how)) add(line);
  std::istringstream build(build_of(how));
  for (std::string line; std::getline(build, line);) add(line);
  return text;
}

}  // namespace sidestream::verify
