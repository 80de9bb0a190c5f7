// The table of `sidestream train`: one entry a flag, in the order of --help and of config.cfg.
#pragma once

#include "launch/options/setting.hpp"
#include "launch/options/train_options.hpp"

namespace sidestream::launch {

// Applied in order: --model comes before the flags that override parts of a preset.
SettingTable<TrainOptions> train_settings();

namespace detail {
// The parts of the table.
SettingGroup<TrainOptions> run_settings();
SettingGroup<TrainOptions> process_settings();
SettingGroup<TrainOptions> record_settings();
SettingGroup<TrainOptions> data_settings();
SettingGroup<TrainOptions> model_settings();
SettingGroup<TrainOptions> optimizer_settings();
SettingGroup<TrainOptions> evaluation_settings();
SettingGroup<TrainOptions> toggle_settings();
SettingGroup<TrainOptions> fault_settings();
}  // namespace detail

}  // namespace sidestream::launch
