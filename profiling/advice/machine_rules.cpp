// The machine under the run: where ranks sit on it, and how old its libraries are.
#include <array>

#include "profiling/advice/foreign_load.hpp"
#include "profiling/advice/rule.hpp"

namespace sidestream::advice {
namespace {

// All memory that the host computes on might lie on the farthest node. Without the firmware's table
// nothing says what that costs: no bound.
std::optional<double> cost_of_remote_memory(const Facts& facts) {
  constexpr double kOwnNode = 10;  // of that table
  const auto farthest = facts.environment_number("numa_farthest");
  if (!farthest || *farthest <= kOwnNode || !facts.step || facts.traces.hidden_kernels)
    return std::nullopt;
  const double by_host = facts.on_device ? facts.step->idle_host_ns + facts.step->idle_after_sync_ns
                                         : facts.step->compute_ns;
  return facts.share_of(by_host) * (1 - kOwnNode / *farthest);
}

Outcome numa(const Facts& facts, const Rule& rule) {
  const auto nodes = facts.environment_number("numa_nodes");
  const auto of_rank = facts.environment_number("numa_nodes_of_rank");
  if (!nodes || !of_rank)
    return could_not_look("a run.json that says on which NUMA nodes a rank may run");
  if (*nodes < 2 || *of_rank <= rule.threshold) return nothing_found();
  Found what{.bound = cost_of_remote_memory(facts),
             .evidence = {{"NUMA nodes of the machine", *nodes, ""},
                          {"NUMA nodes that a rank may run on", *of_rank, ""}}};
  if (const auto farthest = facts.environment_number("numa_farthest"))
    what.evidence.push_back({"the farthest memory by the firmware's table", *farthest / 10, "x",
                             "time that a node's own takes"});
  return found(what);
}

// The first CUDA that has code for a device of this compute capability.
int first_cuda_for(int compute_capability) {
  struct First {
    int capability, version;
  };
  constexpr std::array<First, 8> kFirst = {{{120, 12080},
                                            {100, 12080},
                                            {90, 11080},
                                            {89, 11080},
                                            {86, 11010},
                                            {80, 11000},
                                            {75, 10000},
                                            {70, 9000}}};
  for (const First& one : kFirst) {
    if (compute_capability >= one.capability) return one.version;
  }
  return 0;
}

double as_written(int version) { return version / 1000 + version % 1000 / 10 * 0.1; }  // 12.8

Outcome old_libraries(const Facts& facts, const Rule&) {
  if (!facts.step) return could_not_look(kNeedsSteps);
  if (!facts.on_device && !facts.traces.without_device) return nothing_found();
  if (facts.cuda_runtime == 0 || facts.cuda_driver == 0 || !facts.compute_capability)
    return could_not_look("versions of CUDA and of its driver in the traces");
  const int wanted = first_cuda_for(*facts.compute_capability);
  Found what{
      .evidence = {{"CUDA of the program", as_written(facts.cuda_runtime), ""},
                   {"newest CUDA that the driver knows", as_written(facts.cuda_driver), ""}}};
  if (facts.cuda_runtime < wanted) {
    what.evidence.push_back({"first CUDA with code for this device", as_written(wanted), ""});
    what.fix = "libraries built with a CUDA that knows this device";
    return found(what);
  }
  return facts.cuda_driver < facts.cuda_runtime ? found(what) : nothing_found();
}

Outcome foreign(const Facts& facts, const Rule&) {
  if (!facts.step) return could_not_look(kNeedsSteps);
  if (!facts.system.machine_cpu || !facts.system.process_cores)
    return could_not_look(kNeedsSamples);
  const std::optional<ForeignLoad> load = foreign_load(facts);
  if (!load) return could_not_look("the number of cores in run.json");
  if (!takes_processors(*load, facts)) return nothing_found();
  return found(
      {.bound = load->share,
       .evidence = {{"processors that other programs use", load->processors, ""},
                    {"processors that a rank is ready for and does not get", load->missed, ""},
                    share("of what it could use", load->share, "processors that it wants")},
       .bounds_recorded_time = false});
}

}  // namespace

std::vector<Rule> machine_rules() {
  return {{.id = "foreign-load",
           .title = "Other programs take the processors",
           .threshold = kForeignShare,
           .looks_at =
               "processors that a rank is ready for and does not get, where other programs have at "
               "least half as many",
           .source = "1 in 20: where a step begins to be longer by more than it scatters",
           .fix = "the machine to the run alone; beside other programs, --threads of what they "
                  "leave",
           .false_if = "the other program is a part of the run",
           .check = "processors of the machine that are busy while the run stands still",
           .look = foreign,
           .place = PlaceKind::kStep,
           .before_all = true},
          {"numa", "A rank runs on several NUMA nodes", 1,
           "NUMA nodes among the processors that a rank may run on",
           "memory of another node is farther away: one node a rank",
           "one rank a NUMA node, bound to it (numactl, or mpirun's binding), with --threads as "
           "many as "
           "that node has cores",
           "the memory of the rank is interleaved on purpose", "step time with ranks bound", numa,
           PlaceKind::kStep},
          {"old-libraries", "CUDA or its driver is older than what it is used with", 0,
           "versions of CUDA and driver, and compute capability of the device",
           "CUDA Compatibility guide: an older driver leaves out what needs a newer one; release "
           "notes of "
           "CUDA: the first version with code for a device",
           "a driver as new as the CUDA of the program", "the compatibility package is installed",
           "versions at the head of the trace", old_libraries, PlaceKind::kStep}};
}

}  // namespace sidestream::advice
