// Tables of an export with samples of the GPUs' own counters (nsys profile --gpu-metrics-devices):
// GPU_METRICS and, for the names, TARGET_INFO_GPU_METRICS.
//
// An export has some thirty counters, ten thousand times a second; kept are those that reports use
// (ranges/system_counters.hpp), as readings of every rank that runs on the GPU. Names are those of
// Volta to Blackwell: "Tensor Active [Throughput %]", "SMs Active [Throughput %]", "DRAM Read
// Bandwidth [Throughput %]"; Turing's is "Tensor Active / FP16 Active".
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "profiling/trace/nsys_processes.hpp"
#include "profiling/trace/senseless_times.hpp"
#include "profiling/trace/sqlite_file.hpp"

namespace sidestream::trace {

// Number of samples kept; those whose times cannot be are added to `senseless`. To be called after
// the device tables: before them no rank has a GPU.
std::uint64_t read_gpu_metrics(const SqliteFile& file, NsysProcesses& processes,
                               SenselessTimes& senseless);

// What keeps these tables from being read, for people.
std::vector<std::string> missing_gpu_metric_columns(const SqliteFile& file);

}  // namespace sidestream::trace
