#include "launch/options/bench_options.hpp"

#include <algorithm>

#include "launch/options/command_options.hpp"

namespace sidestream::launch {
namespace {

using Options = BenchOptions;
using comm::DeviceWish;

SettingTable<Options> table() {
  return {
      {"What this machine can do at most",
       {choice<Options, BenchSubject>(
            {"subject", "ceilings|allreduce|allgather|reducescatter",
             "what to measure, the word alone is enough. ceilings: matrix products of each type, "
             "memory, copies to and from a GPU; under mpirun the link between the ranks. The "
             "others: that collective under mpirun, size by size, with NCCL's kernels and its copy "
             "engines side by side",
             "must be given"},
            {{"ceilings", BenchSubject::kCeilings},
             {"allreduce", BenchSubject::kAllReduce},
             {"allgather", BenchSubject::kAllGather},
             {"reducescatter", BenchSubject::kReduceScatter}},
            [](auto& o) -> auto& { return o.subject; }),
        optional_count<Options>({"threads", "N", "threads for compute", "every core"},
                                [](auto& o) -> auto& { return o.threads; }, {1, 4096}),
        number<Options>({"seconds", "SECONDS", "time of each measurement"},
                        [](auto& o) -> auto& { return o.seconds; }, {.min = 0.01, .max = 3600}),
        choice<Options, DeviceWish>(
            {"device", "auto|cpu|cuda",
             "whether a GPU is measured, too, and has to be there; under mpirun: the link between "
             "GPUs or between host ranks",
             "auto: where there is one"},
            {{"auto", DeviceWish::kAuto}, {"cpu", DeviceWish::kCpu}, {"cuda", DeviceWish::kCuda}},
            [](auto& o) -> auto& { return o.device; }),
        on_off<Options>(
            switch_named("replace", "store lower figures than those that are stored, too"),
            [](auto& o) -> auto& { return o.replace; })}}};
}

}  // namespace

BenchOptions parse_bench_options(const std::vector<std::string>& arguments) {
  BenchOptions options =
      parse_command(arguments, table(), {.command = "bench", .positional = "subject"});
  if (!options.subject)
    throw core::ConfigError(
        "`sidestream bench` needs to know what to measure: `sidestream bench ceilings`");
  return options;
}

std::string bench_help(int width_columns) {
  return "Measures what this machine can do at most; `train` takes its MFU from it, and "
         "--nccl-ctas "
         "auto.\n\n"
         "  sidestream bench ceilings\n"
         "  sidestream bench ceilings --threads 1 --seconds 0.5\n"
         "  mpirun -np 2 --bind-to none sidestream bench ceilings\n"
         "  mpirun -np 2 --bind-to none sidestream bench allgather\n\n" +
         flags_help(flags_of(table()), width_columns);
}

}  // namespace sidestream::launch
