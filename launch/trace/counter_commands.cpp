#include "launch/trace/counter_commands.hpp"

#include <algorithm>

#include "core/base/shell_words.hpp"
#include "profiling/advice/ncu_command.hpp"

namespace sidestream::launch {

std::vector<std::string> counter_commands(const nlohmann::ordered_json& top_ops, std::size_t most,
                                          const analysis::Analysis& analysis,
                                          const advice::Facts& facts) {
  if (!facts.on_device) return {};
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, analysis.operation_steps.steps));
  std::vector<advice::MeasuredKernel> kernels;
  for (const auto& one : top_ops) {
    if (kernels.size() == most) break;
    kernels.push_back({one.at("name").get<std::string>(), one.at("calls").get<double>() / steps});
  }
  std::vector<advice::MeasuredKernel> launched;
  for (const analysis::Operation& one : analysis.operations) {
    if (one.kind == trace::Kind::kKernel)
      launched.push_back({one.name, static_cast<double>(one.calls) / steps});
  }
  const auto recorded = facts.environment.find("command_line");
  return advice::ncu_commands(
      kernels, launched,
      core::words_of_shell(recorded == facts.environment.end() ? "" : recorded->second));
}

}  // namespace sidestream::launch
