// Text as it has to stand in HTML, in an element or in a quoted attribute.
#pragma once

#include <string>

namespace sidestream::report {

inline std::string escaped_html(const std::string& text) {
  std::string result;
  for (const char one : text) {
    switch (one) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += one;
    }
  }
  return result;
}

}  // namespace sidestream::report
