#include "profiling/report/wrap.hpp"

#include <algorithm>

#include "core/base/printable.hpp"

namespace sidestream::report {

std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  const std::string shown = core::printable(text);
  std::string result, line = shown.substr(0, std::min(shown.find_first_not_of(' '), shown.size()));
  bool empty = true;
  for (std::size_t start = line.size(); start < shown.size();) {
    const std::size_t end = std::min(shown.find(' ', start), shown.size());
    const std::string word = shown.substr(start, end - start);
    start = end + 1;
    if (!empty && line.size() + 1 + word.size() > width) {
      result += line + "\n";
      line = std::string(indent, ' ');
      empty = true;
    }
    line += (empty ? "" : " ") + word;
    empty = false;
  }
  return result + line + "\n";
}

}  // namespace sidestream::report
