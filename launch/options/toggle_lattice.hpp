// Pairs of flags that only make sense together, settled before any value is applied.
//
//   --overlap on   needs --bucketing on          --loader-workers N   needs --prefetch 1 or more
// Of a pair that disagrees, the value from the higher place wins and the other follows it:
// `--baseline --overlap on` switches buckets on, `--bucketing off` switches the default overlap
// off. Both from the same place is a conflict.
#pragma once

#include <string>
#include <vector>

#include "launch/options/given_layers.hpp"

namespace sidestream::launch {

// Throws ConfigError that names both flags.
void settle_toggles(GivenLayers& layers);

// What --baseline stands for.
std::vector<Given> baseline_values();
// Besides, flags whose defaults follow from these values: --baseline forgets what a file says.
std::vector<std::string> left_to_defaults();

}  // namespace sidestream::launch
