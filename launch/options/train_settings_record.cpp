// What a run records about itself.
#include "launch/options/record_options.hpp"
#include "launch/options/train_settings.hpp"

namespace sidestream::launch::detail {
namespace {

using Options = TrainOptions;

Setting<Options> profile() {
  return {{"profile", "SPEC",
           "a timeline of some steps with every operator: wait=1,warmup=1,active=3,repeat=2"},
          [](Options& options, const std::string& text) {
            options.record.profile = parse_profile_schedule(text);
          },
          [](const Options& options) -> std::optional<std::string> {
            const auto& schedule = options.record.profile;
            return schedule ? std::optional(profile_schedule_text(*schedule)) : std::nullopt;
          }};
}

}  // namespace

SettingGroup<TrainOptions> record_settings() {
  return {"Seeing",
          {choice<Options, RecordedSteps>(
               {"record", "on|alternate|off",
                "record the ranges of the whole run: written at its end, on SIGUSR2 and when a "
                "collective times out; alternate: of every second step, which shows what "
                "recording costs"},
               {{"on", RecordedSteps::kAll},
                {"alternate", RecordedSteps::kEverySecond},
                {"off", RecordedSteps::kNone}},
               [](auto& o) -> auto& { return o.record.record; }),
           count<Options>(
               {"record-ranges", "N",
                "ranges of each thread that there is room for until they are written, raised to a "
                "power of two; 48 bytes each, once they are used"},
               [](auto& o) -> auto& { return o.record.ranges_per_thread; },
               {kLeastRangesPerThread, kMostRangesPerThread}),
           count<Options>({"sample-hz", "N",
                           "samples a second of processor, memory, disk, network and GPU; 0: none"},
                          [](auto& o) -> auto& { return o.record.sample_hz; }, {0, 1000}),
           profile(),
           on_off<Options>(
               switch_named("profile-shapes", "with the shapes of the operators' inputs"),
               [](auto& o) -> auto& { return o.record.shapes; }),
           on_off<Options>(
               switch_named("profile-memory", "with every allocation and release"),
               [](auto& o) -> auto& { return o.record.memory; }),
           on_off<Options>(
               switch_named("profile-stacks", "with the C++ stack of every operator"),
               [](auto& o) -> auto& { return o.record.stacks; }),
           on_off<Options>(
               switch_named("profile-flops",
                            "with the floating-point operations of the operators whose "
                            "work LibTorch counts; --profile-shapes tells those of all"),
               [](auto& o) -> auto& { return o.record.flops; }),
           text<Options>(
               switch_named("profile-modules",
                            "with the layer of every operator; =GLOB: of the layers of that name"),
               [](auto& o) -> auto& { return o.record.modules; })}};
}

}  // namespace sidestream::launch::detail
