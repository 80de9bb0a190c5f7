#include "profiling/advice/foreign_load.hpp"

#include <algorithm>

namespace sidestream::advice {
namespace {

double ranks_of_node(const Facts& facts) {
  return facts.world_size / std::max(1.0, facts.environment_number("nodes").value_or(1));
}

}  // namespace

std::optional<ForeignLoad> foreign_load(const Facts& facts) {
  const analysis::SystemUse& use = facts.system;
  const auto processors = facts.environment_number("cores");
  if (!processors || !use.machine_cpu || !use.process_cores || !use.process_cores_short)
    return std::nullopt;
  const double own = *use.process_cores * ranks_of_node(facts);
  const double wanted = *use.process_cores + *use.process_cores_short;
  return ForeignLoad{.processors = std::max(0.0, *use.machine_cpu * *processors - own),
                     .missed = *use.process_cores_short,
                     .share = wanted > 0 ? *use.process_cores_short / wanted : 0};
}

// Threads of the ranks take processors from each other, too: that is nobody else's doing.
bool takes_processors(const ForeignLoad& load, const Facts& facts) {
  constexpr double kExplains = 0.5;
  return load.share > kForeignShare &&
         load.processors > kExplains * load.missed * ranks_of_node(facts);
}

}  // namespace sidestream::advice
