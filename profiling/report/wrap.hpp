// Sentences on a terminal.
#pragma once

#include <cstddef>
#include <string>

namespace sidestream::report {

// Lines of at most `width` columns, broken at blanks, each with its line break; all but the first
// start with `indent` blanks. A word that is longer stays whole. Control characters become '?'.
std::string wrapped(const std::string& text, std::size_t width, std::size_t indent);

}  // namespace sidestream::report
