// What a run does when something goes wrong, and what is made to go wrong on purpose.
#include "launch/options/train_settings.hpp"

namespace sidestream::launch::detail {
namespace {

using Options = TrainOptions;

// Kept with the run, so that a comparison says what was planted; a file with it needs the same
// permission as the flag.
Setting<Options> inject() {
  return {
      {.name = "inject",
       .value_name = "FAULTS",
       .help = "plant faults, to see what becomes of them: 'kill:rank=1,step=50; slow:ms=200'; "
               "kinds: kill, stop, hang, exit, throw, memory, slow, nan, spike, inf-grad, flip, "
               "disk-full, desync; keys: rank, step, at (start, setup, restore, data, forward, "
               "update, evaluation, checkpoint, commit), steps (how often; 0: for ever), "
               "attempt (of a supervised run; 0: all), ms (slow: how much; kill, stop, exit: how "
               "long after), factor (spike), code (exit); refused unless "
               "SIDESTREAM_FAULT_INJECTION=1"},
      [](Options& options, const std::string& text) {
        options.faults = faults::parse_faults(text);
        options.faults_text = text;
      },
      [](const Options& options) {
        return options.faults.empty() ? std::nullopt : std::optional(options.faults_text);
      }};
}

using enum AnomalyPolicy;

Setting<Options> nan_policy() {
  return choice<Options, AnomalyPolicy>(
      {"nan-policy", "stop|skip|rollback",
       "when a loss or gradient is not finite on any rank: end the run, leave the update out, or "
       "go "
       "back to the newest checkpoint and on with the batches that come next"},
      {{"stop", kStop}, {"skip", kSkip}, {"rollback", kRollback}},
      [](auto& o) -> auto& { return o.numerics.nan_policy; });
}

Setting<Options> spike_policy() {
  return choice<Options, AnomalyPolicy>(
      {"spike-policy", "off|warn|stop|skip|rollback",
       "the same when loss or gradient norm is far above the last 128 steps; a warning only, from "
       "step 33 on, while there are fewer. On a GPU with off, warn and stop of those steps alone "
       "whose numbers are read: logged ones, and every tenth; all with --late-loss off"},
      {{"off", kOff}, {"warn", kWarn}, {"stop", kStop}, {"skip", kSkip}, {"rollback", kRollback}},
      [](auto& o) -> auto& { return o.numerics.spike_policy; });
}

}  // namespace

SettingGroup<TrainOptions> fault_settings() {
  return {"When something goes wrong",
          {nan_policy(), spike_policy(),
           number<Options>(
               {"spike-zscore", "Z",
                "standard deviations above the mean of the 128 steps before that make a spike"},
               [](auto& o) -> auto& { return o.numerics.spike_zscore; }, {.min = 1, .max = 1e6}),
           count<Options>({"max-skipped-steps", "N",
                           "updates that may be left out in a row, and rollbacks without a new "
                           "checkpoint; one more ends the run"},
                          [](auto& o) -> auto& { return o.numerics.max_skipped_steps; },
                          {0, 1'000'000}),
           count<Options>({"drift-every", "STEPS",
                           "compare the weights of all ranks every so many steps, and before every "
                           "save; 0: never. Ranks that share them have nothing to compare"},
                          [](auto& o) -> auto& { return o.numerics.drift_every; }, {}),
           on_off<Options>(
               switch_named("check-collectives",
                            "let all ranks compare every collective call before its data moves: "
                            "slow, to find ranks that do different things"),
               [](auto& o) -> auto& { return o.comm.check_collectives; }),
           inject()}};
}

}  // namespace sidestream::launch::detail
