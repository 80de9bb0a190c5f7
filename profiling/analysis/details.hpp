// The tables that go into every operator, kernel, module and allocation: asked for only when
// somebody reads them, because they cost more than the rest together.
#pragma once

#include <vector>

#include "profiling/analysis/analysis.hpp"
#include "profiling/analysis/counter_table.hpp"
#include "profiling/analysis/kernel_table.hpp"
#include "profiling/analysis/memory_use.hpp"
#include "profiling/analysis/module_table.hpp"
#include "profiling/analysis/operator_table.hpp"

namespace sidestream::analysis {

struct Details {
  std::vector<OperatorRow> operators;
  std::vector<TreeRow> tree;
  std::vector<KernelRow> kernels;
  std::vector<ModuleRow> modules;
  std::vector<MemoryUse> memory;
  std::vector<CounterRow> counters;
};

Details look_closer(const Analysis& analysis);

}  // namespace sidestream::analysis
