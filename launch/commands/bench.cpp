#include <fmt/format.h>

#include "launch/ceilings/ceilings.hpp"
#include "launch/commands/commands.hpp"
#include "launch/options/bench_options.hpp"
#include "launch/process/tuning.hpp"

namespace sidestream::launch {

int run_bench(const CommandCall& call) {
  const BenchOptions options = parse_bench_options(call.arguments);
  pin_and_set_threads(0, 1, options.threads);
  flush_denormals_on_all_threads(true);
  const Ceilings ceilings = measure_ceilings(3 * options.seconds);
  save_ceilings(ceilings, ceilings_file());
  fmt::print("{} with {} thread(s)\n", ceilings.processor, ceilings.cores);
  fmt::print("  matrix product fp32  {:8.1f} GFLOP/s\n", ceilings.fp32_flops_per_s * 1e-9);
  fmt::print("  matrix product bf16  {:8.1f} GFLOP/s\n", ceilings.bf16_flops_per_s * 1e-9);
  fmt::print("  memory, copy         {:8.1f} GB/s (bytes read + bytes written)\n",
             ceilings.memory_bytes_per_s * 1e-9);
  fmt::print("kept in {}: the denominator of MFU on this machine\n", ceilings_file().string());
  return 0;
}

}  // namespace sidestream::launch
