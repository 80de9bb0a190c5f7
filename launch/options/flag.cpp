#include "launch/options/flag.hpp"

#include <utility>

namespace sidestream::launch {

Flag switch_named(std::string name, std::string help) {
  return {.name = std::move(name),
          .value_name = "",
          .help = std::move(help),
          .default_text = "off",
          .kind = FlagKind::kSwitch};
}

Flag call_switch_named(std::string name, std::string help) {
  Flag flag = switch_named(std::move(name), std::move(help));
  flag.scope = FlagScope::kCommandLine;
  return flag;
}

std::vector<std::string> names_of(const std::vector<FlagGroup>& groups) {
  std::vector<std::string> names;
  for (const FlagGroup& group : groups) {
    for (const Flag& flag : group.flags) names.push_back(flag.name);
  }
  return names;
}

}  // namespace sidestream::launch
