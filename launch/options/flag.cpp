#include "launch/options/flag.hpp"

namespace sidestream::launch {

std::vector<std::string> names_of(const std::vector<FlagGroup>& groups) {
  std::vector<std::string> names;
  for (const FlagGroup& group : groups) {
    for (const Flag& flag : group.flags) names.push_back(flag.name);
  }
  return names;
}

}  // namespace sidestream::launch
