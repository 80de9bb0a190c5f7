// Whether the machine was the same for both sides: its clocks, and what others did on it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace sidestream::verify {

// Means over one run; empty: not measured.
struct MachineState {
  std::optional<double> cpu_mhz = {};        // of all processors that the machine has
  std::optional<double> gpu_mhz = {};        // of the busy ones
  std::optional<double> gpu_held_down = {};  // share of the time: by power or heat
  // Of all processors' time, what neither the run nor whoever started it took. On a virtual machine
  // also what its host took away.
  std::optional<double> foreign_cpu = {};

  bool any() const { return cpu_mhz || gpu_mhz || foreign_cpu; }
};

// machine.json of a run directory. Nothing when it is not there or is none.
void write_machine_state(const MachineState& state, const std::filesystem::path& file);
std::optional<MachineState> read_machine_state(const std::filesystem::path& file);

// Means over the runs of both sides.
struct MachineChange {
  MachineState base = {};
  MachineState fresh = {};

  // New over base of the clock that decides, the GPU's where there is one: 0.96; empty when it was
  // not measured.
  std::optional<double> ratio() const;
};

// Below this a change is what clocks do by themselves.
inline constexpr double kClockChange = 0.02;

// Of one block; null: not measured.
struct MachinePair {
  const MachineState* base = nullptr;
  const MachineState* fresh = nullptr;
};

// Nothing unless something was measured in every run of both sides.
std::optional<MachineChange> machine_change(const std::vector<MachinePair>& pairs);

// "clocks fell by 4.0 % from base to new (GPU 1980 to 1900 MHz)"; empty when they did not change.
std::string clock_warning(const MachineChange& change);

// From this share of the processors on, work of others is worth a sentence.
inline constexpr double kForeignLoad = 0.05;

// "something else took 31 % of the processors during base and 4 % during new runs"; empty when
// that was little on both sides, or not measured.
std::string load_warning(const MachineChange& change);

}  // namespace sidestream::verify
