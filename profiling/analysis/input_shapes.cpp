#include "profiling/analysis/input_shapes.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>

namespace sidestream::analysis {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// What lies between the brackets; nothing when there are none.
bool open_list(std::string_view& text) {
  text = trimmed(text);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return false;
  text = trimmed(text.substr(1, text.size() - 2));
  return true;
}

// Up to the next comma outside of brackets and quotes.
std::string_view take_element(std::string_view& text) {
  int depth = 0;
  bool quoted = false;
  std::size_t at = 0;
  for (; at < text.size(); ++at) {
    const char one = text[at];
    if (one == '"') quoted = !quoted;
    if (quoted) continue;
    depth += one == '[';
    depth -= one == ']';
    if (one == ',' && depth == 0) break;
  }
  const std::string_view element = trimmed(text.substr(0, at));
  text.remove_prefix(std::min(text.size(), at + 1));
  return element;
}

bool is_list_of_lists(std::string_view element) {
  return open_list(element) && !element.empty() && element.front() == '[';
}

}  // namespace

std::vector<std::string_view> list_elements(std::string_view text) {
  std::vector<std::string_view> elements;
  if (!open_list(text)) return elements;
  while (!text.empty()) {
    std::string_view one = take_element(text);
    if (one.size() >= 2 && one.front() == '"' && one.back() == '"')
      one = one.substr(1, one.size() - 2);
    elements.push_back(one);
  }
  return elements;
}

Dims integers_in(std::string_view text) {
  Dims numbers;
  for (const std::string_view element : list_elements(text)) {
    std::int64_t value = 0;
    const auto result = std::from_chars(element.data(), element.data() + element.size(), value);
    if (result.ec == std::errc{}) numbers.push_back(value);
  }
  return numbers;
}

std::vector<ArgumentShapes> parse_shapes(std::string_view text) {
  std::vector<ArgumentShapes> arguments;
  for (const std::string_view element : list_elements(text)) {
    ArgumentShapes& argument = arguments.emplace_back();
    if (!is_list_of_lists(element)) {
      argument.push_back(integers_in(element));
      continue;
    }
    for (const std::string_view tensor : list_elements(element))
      argument.push_back(integers_in(tensor));
  }
  return arguments;
}

double element_count(const Dims& dims) {
  double product = 1;
  for (const std::int64_t one : dims) {
    if (one < 0) return 0;
    product *= static_cast<double>(one);
  }
  return product;
}

}  // namespace sidestream::analysis
