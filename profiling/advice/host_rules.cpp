// The host: launches, synchronisation, the optimizer, saves, threads.
#include <algorithm>
#include <iterator>

#include "profiling/advice/foreign_load.hpp"
#include "profiling/advice/rule.hpp"

namespace sidestream::advice {
namespace {

// A rule of its own, whoever fetches the value: what waits for the device is said once.
bool logs_each_step(const Facts& facts) { return facts.setting("log-every") == "1"; }

constexpr const char* kNeedsHostEvents = "host events in the traces";
constexpr const char* kNeedsRuntime = "calls of CUDA's runtime in the traces";
constexpr const char* kNeedsRun = "the run directory of the traces (config.cfg, run.json)";

Outcome item_calls(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_budget(facts)) return *nothing;
  if (!facts.on_device) return nothing_found();  // on the processor nothing waits
  if (!facts.syncs) return could_not_look(kNeedsHostEvents);
  if (!facts.traces.operators) return could_not_look(kNeedsOperators);
  constexpr double kWorthIt = 0.005;
  const double idle = facts.share_of(facts.step->idle_sync_ns);
  if (facts.syncs->item_calls < rule.threshold || idle < kWorthIt || logs_each_step(facts))
    return nothing_found();
  return found({.bound = idle,
                .evidence = {{"calls of item()", facts.syncs->item_calls, "", "step"},
                             share("idle after synchronisation", idle)}});
}

Outcome synchronisation(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_budget(facts)) return *nothing;
  if (!facts.syncs) return could_not_look(kNeedsHostEvents);
  if (facts.on_device && !facts.traces.runtime_calls) return could_not_look(kNeedsRuntime);
  const double idle = facts.share_of(facts.step->idle_sync_ns);
  if (idle <= rule.threshold || facts.syncs->item_calls >= 1 || logs_each_step(facts))
    return nothing_found();
  return found({.bound = idle,
                .evidence = {{"synchronising calls", facts.syncs->calls, "", "step"},
                             share("idle after synchronisation", idle)}});
}

Outcome unfused_optimizer(const Facts& facts, const Rule& rule) {
  if (!facts.step) return could_not_look(kNeedsSteps);
  if (!facts.optimizer) return could_not_look("ranges named optimizer in the traces");
  // Of a device the host is through with it when the update begins: its kernels are what takes
  // time.
  const double on_device = facts.share_of(facts.optimizer->device_ns);
  const double time = std::max(facts.share_of(facts.optimizer->time_ns), on_device);
  constexpr double kShare = 0.03;
  if (time <= kShare) return nothing_found();
  const auto fused = facts.setting("fused-optimizer");  // the setting says it, too
  if (!facts.traces.operators && !fused) return could_not_look(kNeedsOperators);
  if (facts.optimizer->launches <= rule.threshold && fused != "off") return nothing_found();
  Found what{.bound = std::min(1.0, time),
             .evidence = {share("optimizer", facts.share_of(facts.optimizer->time_ns))}};
  if (on_device > 0) what.evidence.push_back(share("kernels started in the optimizer", on_device));
  if (facts.traces.operators)
    what.evidence.push_back({"operators in the optimizer", facts.optimizer->launches, "", "step"});
  return found(what);
}

// Where nothing is fused the whole optimizer is the finding.
Outcome separate_weight_decay(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_budget(facts)) return *nothing;
  if (!facts.optimizer) return could_not_look("ranges named optimizer in the traces");
  if (facts.setting("fused-optimizer") == "off") return nothing_found();
  if (!facts.traces.operators) return could_not_look(kNeedsOperators);
  const double time = facts.share_of(facts.optimizer->passes_ns);
  const bool fused = facts.optimizer->fused_update || facts.setting("fused-optimizer") == "on";
  if (!fused || time <= rule.threshold) return nothing_found();
  return found({.bound = time,
                .evidence = {share("sums and products over parameters, beside the update", time)}});
}

// On a device kernels are told by their lengths: small-kernels and launch-bound speak of them.
Outcome unfused_operators(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_budget(facts)) return *nothing;
  if (facts.on_device) return nothing_found();
  const auto fused = facts.setting("fused-ops");
  if (!fused && !facts.foreign) return could_not_look(kNeedsRun);
  if (!facts.fusible_ns) return could_not_look(kNeedsOperators);
  const double time = facts.share_of(*facts.fusible_ns);
  const bool on = fused && *fused != "off";
  if (on || time <= rule.threshold) return nothing_found();
  return found({.bound = time, .evidence = {share("activations, norms and softmax", time)}});
}

Outcome heavy_operators(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_budget(facts)) return *nothing;
  if (!facts.on_device) return nothing_found();  // on the processor operators are the compute
  if (!facts.heavy_operators) return could_not_look(kNeedsOperators);
  const HeavyOperatorFacts& heavy = *facts.heavy_operators;
  const double idle = facts.share_of(facts.step->idle_host_ns + facts.step->idle_data_ns +
                                     facts.step->idle_after_sync_ns);
  const double bound = std::min(idle, facts.share_of(heavy.time_ns));
  if (bound <= rule.threshold) return nothing_found();
  return found({.bound = bound,
                .evidence = {milliseconds("in operators of 1 ms or more", heavy.time_ns),
                             {"longest: " + heavy.longest, heavy.longest_ns * 1e-6, "ms"},
                             share("device idle meanwhile, at most", idle)}});
}

Outcome logging(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_budget(facts)) return *nothing;
  if (!facts.on_device) return nothing_found();  // on the processor a loss is there when it is made
  if (!facts.setting("log-every")) return could_not_look(kNeedsRun);
  const double idle = facts.share_of(facts.step->idle_sync_ns);
  if (!logs_each_step(facts) || idle <= rule.threshold) return nothing_found();
  return found(
      {.bound = idle,
       .evidence = {{"log-every", 1, "", "step"}, share("idle after synchronisation", idle)}});
}

Outcome launch_bound(const Facts& facts, const Rule& rule) {
  if (const auto nothing = without_kernels(facts)) return *nothing;
  if (!facts.syncs) return could_not_look(kNeedsHostEvents);
  const double idle = facts.share_of(facts.step->idle_host_ns);
  const bool computing =  // its own rule
      facts.heavy_operators && facts.share_of(facts.heavy_operators->time_ns) > idle / 2;
  if (idle <= rule.threshold || computing) return nothing_found();
  return found({.bound = idle,
                .evidence = {share("idle, the host too slow", idle),
                             {"kernels", facts.kernels->per_step, "", "step"},
                             {"mean kernel", facts.kernels->mean_ns * 1e-3, "us"}}});
}

Outcome checkpoint(const Facts& facts, const Rule& rule) {
  if (!facts.step) return could_not_look(kNeedsSteps);
  if (!facts.saves && !facts.phase_ns.empty())
    return could_not_look("steps in the traces that follow each other");
  if (!facts.saves) return could_not_look("phases of the step in the traces");
  const SaveFacts& saves = *facts.saves;
  if (saves.share_with_beside() <= rule.threshold) return nothing_found();
  Found what{.bound = saves.share_with_beside(),
             .evidence = {share("saving", saves.share(), "time from step to step"),
                          milliseconds("inside steps", saves.inside_ns),
                          milliseconds("between steps", saves.between_ns)}};
  if (saves.beside_ns > 0)
    what.evidence.push_back(
        milliseconds("written beside the steps, on processors that compute", saves.beside_ns));
  return found(what);
}

// Share of the processors that a rank is ready for and does not get; nothing without samples.
std::optional<double> waiting_for_processors(const Facts& facts) {
  const auto &running = facts.system.process_cores, &missed = facts.system.process_cores_short;
  if (!running || !missed || *running + *missed <= 0) return std::nullopt;
  return *missed / (*running + *missed);
}

Outcome oversubscribed(const Facts& facts, const Rule& rule) {
  if (facts.environment.empty()) return could_not_look(kNeedsRun);
  const double wanted = facts.threads_per_core();
  if (wanted == 0) return could_not_look("the number of cores in run.json");
  if (wanted <= rule.threshold) return nothing_found();
  const std::optional<double> waiting = waiting_for_processors(facts);
  if (waiting && *waiting <= kForeignShare) return nothing_found();
  Found what{.bound = 1 - 1 / wanted, .bounds_recorded_time = false};
  if (facts.environment_number("threads_per_rank") == 1.0)
    what.fix = "fewer ranks on this node: each has one thread already";
  if (waiting)
    what.evidence = {{"threads that compute", wanted, "", "core"},
                     share("ready and not running", *waiting, "processors that a rank wants")};
  else
    what.evidence = {{"threads that compute", wanted, "",
                      "a core by the settings alone: no samples of the system saw them wait"}};
  return found(what);
}

// What a rank reaches of its peak while it computes: its products where their shapes are known,
// else the model's FLOPs.
std::optional<double> reached_of_peak(const Facts& facts) {
  if (facts.products && facts.products->host_ns > 0 && facts.ceilings) {
    const bool fp32 = facts.products->fp32_flops > facts.products->flops / 2;
    const auto peak = facts.ceilings->flops_per_s.find(fp32 ? "fp32" : "bf16");
    if (peak != facts.ceilings->flops_per_s.end() && peak->second > 0)
      return facts.products->flops / facts.products->host_ns * 1e9 / peak->second;
  }
  if (!facts.mfu || !facts.step || facts.step->compute_ns <= 0) return std::nullopt;
  return *facts.mfu * facts.step->window_ns / facts.step->compute_ns;
}

// The setting alone says nothing of the numbers: only compute that is far too slow does.
Outcome denormals(const Facts& facts, const Rule& rule) {
  const auto flush = facts.setting("flush-denormals");
  if (!flush) return could_not_look(kNeedsRun);
  if (*flush != "off" || facts.on_device) return nothing_found();
  const std::optional<double> reached = reached_of_peak(facts);
  if (!reached || !facts.step)
    return found(
        {.evidence = {{"flush-denormals", 0, "",
                       "a setting alone: what compute reaches of its peak is not known"}}});
  if (*reached >= rule.threshold) return nothing_found();
  // What products make of denormals goes through everything else that computes, too.
  constexpr double kSlower = 25;
  const double time = facts.share_of(facts.step->compute_ns);
  return found({.bound = time * (1 - *reached),
                .evidence = {{"flush-denormals", 0, ""},
                             share("compute", time),
                             share("reached there", *reached, "peak of the processor"),
                             {"a product of denormals is slower by", kSlower, "x"}}});
}

const Rule kHostRules[] = {
    {"item-each-step", "A value is fetched from the device in every step", 1,
     "calls of item() a step", "nsys rule cuda_api_sync: any synchronising call",
     "fetch it every --log-every steps, or without waiting", "the loop needs the value to go on",
     "idle after synchronisation", item_calls, PlaceKind::kItem},
    {"synchronisation", "The host waits for the device", 0.03,
     "idle in synchronising calls, and after them until the device works again",
     "nsys rule cuda_api_sync: any; 3 % so that ends of steps do not count",
     "no cudaDeviceSynchronize or blocking copy inside a step", "it is the profiler's own",
     "idle after synchronisation", synchronisation, PlaceKind::kSync},
    {"logging-each-step", "Every step waits for its log line", 0.03,
     "idle after synchronisation with --log-every 1",
     "nsys rule cuda_api_sync: any; 3 % so that ends of steps do not count", "--log-every 10",
     "something else waits too", "idle after synchronisation", logging, PlaceKind::kSync,
     Figures::kOfStep},
    {"unfused-optimizer", "The optimizer goes through the parameters one by one", 50,
     "operators or kernels in the optimizer's range, where it takes more than 3 % of a step",
     "a fused update is a handful of kernels, whatever the number of parameters",
     "--fused-optimizer on", "most of it is clipping or communication",
     "time of the phase optimizer", unfused_optimizer, PlaceKind::kOptimizer},
    {"separate-weight-decay", "Weight decay or clipping in a pass of its own", 0.02,
     "sums and products over parameters in the optimizer's range, beside a fused update",
     "a pass reads and writes every parameter once; the fused update does it on its way",
     "weight decay and clipping folded into the update (--fused-optimizer on)",
     "the passes are over something else", "time of the phase optimizer", separate_weight_decay,
     PlaceKind::kOptimizer},
    {"unfused-operators", "Activations and norms pass over memory one by one", 0.03,
     "time of activations, norms and softmax as operators of their own, on the processor",
     "each of them reads and writes every element; a fused one does it while they are in the cache",
     "--fused-ops on", "they are of a layer that no fused operator does",
     "`verify` with --new \"--fused-ops on\": step time and loss", unfused_operators,
     PlaceKind::kFusible},
    {"heavy-host-operators", "The host computes while the device waits", 0.05,
     "operators of the host that take 1 ms or more and start nothing, where the device is idle",
     "HTA counts launch calls above 50 us: 1 ms is twenty of them",
     "the operator on the device, or ahead of time by --loader-workers",
     "the device would wait for something else all the same", "idle, host too slow",
     heavy_operators, PlaceKind::kHostOperator},
    {"launch-bound", "Kernels are launched too late", 0.10, "idle because nothing was launched",
     "HTA counts a launch delay above 100 us; 10 % of a step is where it shows",
     "--cuda-graph on, which makes one launch of a step; --fused-ops on, a larger batch",
     "the host was busy with something else: see the timeline", "idle, host too slow", launch_bound,
     PlaceKind::kLaunchGap},
    {"checkpoint-in-step", "Steps wait for checkpoints to be written", 0.01,
     "saving inside of steps and between them, over the time from one step to the next; the bound "
     "has half of what is written beside the steps, too",
     "1 %: what a save a minute of one second costs", "a larger --checkpoint-every, faster storage",
     "the window was chosen around a save", "steps tagged checkpoint", checkpoint,
     PlaceKind::kCheckpoint},
    {"oversubscribed", "More threads than cores", 1,
     "threads of all ranks of a node over its cores", "one computing thread a core",
     "--threads auto", "the ranks share threads on purpose", "threads_per_rank in run.json",
     oversubscribed, PlaceKind::kStep},
    {"denormals", "Denormal numbers are not flushed", 0.1,
     "--flush-denormals off on the processor, where compute stays below a tenth of the peak",
     "a product of denormals was measured 25 times slower", "--flush-denormals on",
     "no value is that small, and the products are small or held up by something else",
     "step time late in training", denormals, PlaceKind::kStep}};

}  // namespace

std::vector<Rule> host_rules() { return {std::begin(kHostRules), std::end(kHostRules)}; }

}  // namespace sidestream::advice
