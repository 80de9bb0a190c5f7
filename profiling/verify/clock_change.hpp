// Whether the clocks of the machine were the same for both sides.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sidestream::verify {

// Means over one run; empty: not measured.
struct Clocks {
  std::optional<double> cpu_mhz = {};        // of all processors that the machine has
  std::optional<double> gpu_mhz = {};        // of the busy ones
  std::optional<double> gpu_held_down = {};  // share of the time: by power or heat

  bool any() const { return cpu_mhz || gpu_mhz; }
};

// clocks.json of a run directory. Nothing when it is not there or is none.
void write_clocks(const Clocks& clocks, const std::filesystem::path& file);
std::optional<Clocks> read_clocks(const std::filesystem::path& file);

// Means over the runs of both sides.
struct ClockChange {
  Clocks base = {};
  Clocks fresh = {};

  // New over base of the clock that decides, the GPU's where there is one: 0.96; empty when it was
  // not measured.
  std::optional<double> ratio() const;
};

// Below this a change is what clocks do by themselves.
inline constexpr double kClockChange = 0.02;

// Of one block; null: not measured.
struct ClockPair {
  const Clocks* base = nullptr;
  const Clocks* fresh = nullptr;
};

// Nothing unless every run of both sides was measured.
std::optional<ClockChange> clock_change(const std::vector<ClockPair>& pairs);

// "clocks fell by 4.0 % from base to new (GPU 1980 to 1900 MHz)"; empty when they did not change.
std::string clock_warning(const ClockChange& change);

}  // namespace sidestream::verify
