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
          {on_off<Options>(
               {"record", "on|off",
                "record the ranges of the whole run: written at its end, on SIGUSR2 and when a "
                "collective times out"},
               [](auto& o) -> auto& { return o.record.record; }),
           count<Options>({"sample-hz", "N",
                           "samples a second of processor, memory, disk, network and GPU; 0: none"},
                          [](auto& o) -> auto& { return o.record.sample_hz; }, {0, 1000}),
           profile(),
           on_off<Options>(
               {.name = "profile-shapes",
                .value_name = "",
                .help = "with the shapes of the operators' inputs",
                .kind = FlagKind::kSwitch},
               [](auto& o) -> auto& { return o.record.shapes; }),
           on_off<Options>(
               {.name = "profile-memory",
                .value_name = "",
                .help = "with every allocation and release",
                .kind = FlagKind::kSwitch},
               [](auto& o) -> auto& { return o.record.memory; }),
           on_off<Options>(
               {.name = "profile-stacks",
                .value_name = "",
                .help = "with the C++ stack of every operator",
                .kind = FlagKind::kSwitch},
               [](auto& o) -> auto& { return o.record.stacks; }),
           on_off<Options>(
               {.name = "profile-flops",
                .value_name = "",
                .help = "with the floating-point operations of operators",
                .kind = FlagKind::kSwitch},
               [](auto& o) -> auto& { return o.record.flops; }),
           text<Options>(
               {.name = "profile-modules",
                .value_name = "",
                .help = "with the layer of every operator; =GLOB: of the layers of that name",
                .kind = FlagKind::kSwitch},
               [](auto& o) -> auto& { return o.record.modules; })}};
}

}  // namespace sidestream::launch::detail
