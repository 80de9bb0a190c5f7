#include "parallel/missing_gradients.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace sidestream::parallel {
namespace {

constexpr std::size_t kNamesInMessage = 5;

}  // namespace

std::string missing_gradients_text(const std::vector<Parameter>& parameters,
                                   const std::vector<std::size_t>& missing) {
  std::vector<std::string> names;
  for (const std::size_t i : missing) {
    if (names.size() < kNamesInMessage) names.push_back("'" + parameters.at(i).name + "'");
  }
  return fmt::format(
      "{} of {} parameters got no gradient in the last micro-step: {}{}. Use them in the loss, or "
      "pass --unused-parameters allow (unused_parameters of a DataParallelConfig) to count their "
      "gradient as zero. One that was frozen after DataParallel was made needs a new "
      "DataParallel.",
      missing.size(), parameters.size(), fmt::join(names, ", "),
      missing.size() > names.size() ? ", ..." : "");
}

}  // namespace sidestream::parallel
