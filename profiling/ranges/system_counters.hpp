// Names of the system's counters in a trace: writer and readers take them from here. Each has its
// unit in its name and one value a series.
#pragma once

namespace sidestream::ranges {

inline constexpr const char* kSystemCategory = "system";  // of the events

// Processors that the threads of a rank ran on ("running") or were ready for ("waiting"), 100 %
// each.
inline constexpr const char* kProcessCpu = "process cpu [%]";
// Of all processors together: "busy".
inline constexpr const char* kMachineCpu = "machine cpu [%]";
// A series a disk: time with a request in work.
inline constexpr const char* kDiskBusy = "disk busy [%]";
inline constexpr const char* kDiskBytes = "disk [MiB/s]";    // "read", "written"
inline constexpr const char* kGpuUse = "gpu use [%]";        // "kernels", "memory"
inline constexpr const char* kGpuClock = "gpu clock [MHz]";  // "core", "memory"
// 1 while the clock is below what it could be: this series, and one a reason.
inline constexpr const char* kGpuHeldDown = "gpu held down";
inline constexpr const char* kHeldDownByPowerOrHeat = "by power or heat";

// Since the sampler's first look: "board", of the GPU of the rank.
inline constexpr const char* kGpuEnergy = "gpu energy [J]";

// Of the GPU's own counters, as Nsight Systems samples them (--gpu-metrics-devices): cycles in
// which the Tensor pipes were active and those in which an SM had work, and bandwidth over its
// peak.
inline constexpr const char* kGpuCounters = "gpu counters [%]";
inline constexpr const char* kTensorActive = "Tensor Cores active";
inline constexpr const char* kSmsActive = "SMs active";
inline constexpr const char* kDramRead = "DRAM read";
inline constexpr const char* kDramWritten = "DRAM written";

}  // namespace sidestream::ranges
