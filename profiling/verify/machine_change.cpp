#include "profiling/verify/machine_change.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "profiling/report/number_at.hpp"
#include "profiling/report/or_null.hpp"

namespace sidestream::verify {
namespace {

using report::number_at;
using report::or_null;
using Json = nlohmann::ordered_json;
using Member = std::optional<double> MachineState::*;

// Empty unless all of them have it.
std::optional<double> mean_of(const std::vector<const MachineState*>& runs, Member member) {
  double sum = 0;
  for (const MachineState* run : runs) {
    if (!(run->*member)) return std::nullopt;
    sum += *(run->*member);
  }
  return runs.empty() ? std::nullopt : std::optional(sum / static_cast<double>(runs.size()));
}

MachineState means_of(const std::vector<const MachineState*>& runs) {
  return {.cpu_mhz = mean_of(runs, &MachineState::cpu_mhz),
          .gpu_mhz = mean_of(runs, &MachineState::gpu_mhz),
          .gpu_held_down = mean_of(runs, &MachineState::gpu_held_down),
          .foreign_cpu = mean_of(runs, &MachineState::foreign_cpu)};
}

}  // namespace

void write_machine_state(const MachineState& state, const std::filesystem::path& file) {
  const Json json = {{"cpu_mhz", or_null(state.cpu_mhz)},
                     {"gpu_mhz", or_null(state.gpu_mhz)},
                     {"gpu_held_down", or_null(state.gpu_held_down)},
                     {"foreign_cpu", or_null(state.foreign_cpu)}};
  core::write_file_atomically(file, json.dump() + "\n");
}

std::optional<MachineState> read_machine_state(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return std::nullopt;
  const Json json = Json::parse(core::read_file(file), nullptr, false);
  if (!json.is_object()) return std::nullopt;
  return MachineState{.cpu_mhz = number_at(json, "cpu_mhz"),
                      .gpu_mhz = number_at(json, "gpu_mhz"),
                      .gpu_held_down = number_at(json, "gpu_held_down"),
                      .foreign_cpu = number_at(json, "foreign_cpu")};
}

std::optional<double> MachineChange::ratio() const {
  if (base.gpu_mhz && fresh.gpu_mhz && *base.gpu_mhz > 0) return *fresh.gpu_mhz / *base.gpu_mhz;
  if (base.cpu_mhz && fresh.cpu_mhz && *base.cpu_mhz > 0) return *fresh.cpu_mhz / *base.cpu_mhz;
  return std::nullopt;
}

std::optional<MachineChange> machine_change(const std::vector<MachinePair>& pairs) {
  std::vector<const MachineState*> base, fresh;
  for (const auto& [left, right] : pairs) {
    if (left == nullptr || right == nullptr) return std::nullopt;
    base.push_back(left);
    fresh.push_back(right);
  }
  const MachineChange change{.base = means_of(base), .fresh = means_of(fresh)};
  const bool has_load = change.base.foreign_cpu && change.fresh.foreign_cpu;
  return change.ratio() || has_load ? std::optional(change) : std::nullopt;
}

std::string clock_warning(const MachineChange& change) {
  const auto ratio = change.ratio();
  if (!ratio || std::abs(*ratio - 1) < kClockChange) return "";
  const bool gpu = change.base.gpu_mhz && change.fresh.gpu_mhz;
  return fmt::format("clocks {} by {:.1f} % from base to new ({} {:.0f} to {:.0f} MHz)",
                     *ratio < 1 ? "fell" : "rose", std::abs(*ratio - 1) * 100,
                     gpu ? "GPU" : "processors", gpu ? *change.base.gpu_mhz : *change.base.cpu_mhz,
                     gpu ? *change.fresh.gpu_mhz : *change.fresh.cpu_mhz);
}

std::string load_warning(const MachineChange& change) {
  const auto &base = change.base.foreign_cpu, &fresh = change.fresh.foreign_cpu;
  if (!base || !fresh || std::max(*base, *fresh) < kForeignLoad) return "";
  return fmt::format(
      "something else took {:.0f} % of the processors during base and {:.0f} % during new runs",
      *base * 100, *fresh * 100);
}

}  // namespace sidestream::verify
