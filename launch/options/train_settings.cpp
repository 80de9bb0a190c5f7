#include "launch/options/train_settings.hpp"

namespace sidestream::launch {

SettingTable<TrainOptions> train_settings() {
  return {detail::run_settings(),       detail::data_settings(),       detail::model_settings(),
          detail::optimizer_settings(), detail::evaluation_settings(), detail::process_settings(),
          detail::fault_settings(),     detail::toggle_settings(),     detail::record_settings()};
}

}  // namespace sidestream::launch
