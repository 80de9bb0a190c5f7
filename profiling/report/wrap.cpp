#include "profiling/report/wrap.hpp"

#include <algorithm>

#include "profiling/report/printable.hpp"

namespace sidestream::report {

std::string wrapped(const std::string& raw, std::size_t width, std::size_t indent) {
  const std::string text = printable(raw);
  std::string result, line = text.substr(0, std::min(text.find_first_not_of(' '), text.size()));
  bool empty = true;
  for (std::size_t start = line.size(); start < text.size();) {
    const std::size_t end = std::min(text.find(' ', start), text.size());
    const std::string word = text.substr(start, end - start);
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
