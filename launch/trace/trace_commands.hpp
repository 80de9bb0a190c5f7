// The commands of `sidestream-trace`. Each returns the exit code; what goes wrong is thrown.
#pragma once

#include "launch/options/compare_options.hpp"
#include "launch/options/roofline_options.hpp"
#include "launch/options/trace_options.hpp"

namespace sidestream::launch {

int run_report(const ReportOptions& options);
int run_merge(const MergeOptions& options);
int run_compare(const CompareOptions& options);
int run_roofline(const RooflineOptions& options);

// One line on standard error, and the exit code that the exception means.
int report_trace_failure(const std::exception& error);

}  // namespace sidestream::launch
