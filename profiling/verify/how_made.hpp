// How the runs of a verification were made, for whoever wants to repeat it: the part that reports
// of every form end with.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace sidestream::verify {

struct HowMade {
  std::vector<std::string> commands = {};  // the verification's own first
  std::string version = {};                // empty: not known
  std::map<std::string, std::string> environment = {};
};

std::string markdown_of(const HowMade& how);
std::string text_of(const HowMade& how, std::size_t width_columns);

}  // namespace sidestream::verify
