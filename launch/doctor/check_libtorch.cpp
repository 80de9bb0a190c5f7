#include <fmt/format.h>

#include "launch/doctor/checks.hpp"
#include "launch/doctor/over_ranks.hpp"

namespace sidestream::launch::doctor {

std::optional<Finding> check_libtorch(const JobFacts& job) {
  return worst_over(job, Subject::kRank, [](const RankFacts& rank) -> Finding {
    const ProgramFacts& program = rank.program;
    if (program.torch == program.built_torch)
      return {.name = "libtorch", .found = fmt::format("LibTorch {}", program.torch)};
    if (program.torch.empty())
      return {.name = "libtorch",
              .level = Level::kNote,
              .found = "the LibTorch that was loaded does not say its version",
              .expected =
                  fmt::format("LibTorch {}, which this build was made with", program.built_torch),
              .remedy = "look at LD_LIBRARY_PATH and LD_PRELOAD, or build again with launch/setup"};
    return {
        .name = "libtorch",
        .level = Level::kError,
        .found = fmt::format("LibTorch {} was loaded", program.torch),
        .expected = fmt::format("LibTorch {}, which this build was made with", program.built_torch),
        .remedy =
            "take the other copy out of LD_LIBRARY_PATH and LD_PRELOAD, or build again "
            "with launch/setup"};
  });
}

}  // namespace sidestream::launch::doctor
