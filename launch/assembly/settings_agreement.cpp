#include "launch/assembly/settings_agreement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/faults/fault_injector.hpp"
#include "launch/options/train_parser.hpp"

namespace sidestream::launch {
namespace {

constexpr std::array<std::string_view, 4> kMayDiffer = {"threads", "loader-workers", "prefetch",
                                                        "pin-memory"};

// "lr" of "lr = 0.1" and of "# lr = X  # not set: ..."
std::string_view key_of(std::string_view line) {
  if (line.starts_with("# ")) line.remove_prefix(2);
  return line.substr(0, line.find(" = "));
}

// Behind the settings of a rank on which faults may be planted: the first one's permission is that
// of all, so that all judge alike.
constexpr std::string_view kPermission = "\nfaults may be planted";

// A rank with a larger batch than its peers trains samples that are theirs, too: a fault that may
// be planted.
bool may_differ(std::string_view line, bool permitted) {
  if (key_of(line) == "batch-size-per-rank") return permitted;
  return std::find(kMayDiffer.begin(), kMayDiffer.end(), key_of(line)) != kMayDiffer.end();
}

// What is not set is a comment with its help in it.
std::string said(const std::string& line) {
  return line.starts_with("# ") ? fmt::format("{} not set", key_of(line)) : line;
}

// All ranks run one build: their texts have the same keys, line by line. Empty where all agree.
std::string difference(const std::string& first, const std::string& other) {
  std::istringstream first_lines(first), other_lines(other);
  const bool permitted = first.ends_with(kPermission);
  std::string expected, found;
  while (std::getline(first_lines, expected) && std::getline(other_lines, found)) {
    if (expected != found && !may_differ(expected, permitted))
      return fmt::format("expected {} as on rank 0, found {}", said(expected), said(found));
  }
  return {};
}

}  // namespace

void require_same_settings(Session& session, const TrainOptions& options) {
  std::string mine = config_text(options);
  if (faults::is_permitted()) mine += kPermission;
  const std::vector<std::string> texts =
      session.communicator().exchange(mine, {.deadline = options.timeouts.setup,
                                             .deadline_flag = "--timeout-setup",
                                             .purpose = "settings"});
  for (std::size_t rank = 1; rank < texts.size(); ++rank) {
    const std::string differs = difference(texts.front(), texts[rank]);
    if (differs.empty()) continue;
    throw core::AgreedError(
        fmt::format("Rank {} was started with other settings: {}. Start all ranks with the same "
                    "options.",
                    rank, differs),
        core::ExitCode::kConfig);
  }
}

}  // namespace sidestream::launch
