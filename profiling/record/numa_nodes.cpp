#include "profiling/record/numa_nodes.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <string_view>

namespace sidestream::record {
namespace {

namespace fs = std::filesystem;

constexpr int kMostProcessors = 1 << 16;

bool is_node(const std::string& name) {
  return name.size() > 4 && name.starts_with("node") &&
         name.find_first_not_of("0123456789", 4) == std::string::npos;
}

// The number at the start of the text, which it is taken from; below 0 when there is none.
int take_number(std::string_view& text) {
  int value = -1;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || value < 0 || value > kMostProcessors) return -1;
  text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
  return value;
}

bool share_one(const std::vector<int>& some, const std::vector<int>& others) {
  return std::any_of(some.begin(), some.end(), [&](int one) {
    return std::find(others.begin(), others.end(), one) != others.end();
  });
}

// From one node to all, in the order of their numbers: "10 21".
std::optional<int> farthest_from(const fs::path& node) {
  std::ifstream file(node / "distance");
  std::optional<int> farthest;
  for (int distance = 0; file >> distance;) farthest = std::max(farthest.value_or(0), distance);
  return farthest;
}

}  // namespace

std::vector<int> processor_list(const std::string& list) {
  std::vector<int> processors;
  std::string_view text = list;
  while (!text.empty() && text.front() != '\n') {
    const int first = take_number(text);
    if (first < 0) return {};
    int last = first;
    if (text.starts_with('-')) {
      text.remove_prefix(1);
      last = take_number(text);
      if (last < first) return {};
    }
    for (int one = first; one <= last; ++one) processors.push_back(one);
    if (text.starts_with(',')) text.remove_prefix(1);
  }
  return processors;
}

std::optional<NumaNodes> numa_nodes(const std::vector<int>& allowed, const fs::path& nodes) {
  NumaNodes found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(nodes, error)) {
    if (!is_node(entry.path().filename().string())) continue;
    std::ifstream file(entry.path() / "cpulist");
    std::string text;
    std::getline(file, text);
    const std::vector<int> of_node = processor_list(text);
    if (of_node.empty()) continue;  // memory without processors
    ++found.machine;
    if (!share_one(of_node, allowed)) continue;
    ++found.process;
    if (const auto distance = farthest_from(entry.path()))
      found.farthest = std::max(found.farthest.value_or(0), *distance);
  }
  return found.machine == 0 || found.process == 0 ? std::nullopt : std::optional(found);
}

}  // namespace sidestream::record
