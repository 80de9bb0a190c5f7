// What `sidestream doctor` can be told.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "comm/device/device_choice.hpp"

namespace sidestream::launch {

struct DoctorOptions {
  comm::DeviceWish device = comm::DeviceWish::kAuto;
  std::filesystem::path run_dir = ".";
  std::filesystem::path json = {};  // empty: text only
};

// Throws ConfigError.
DoctorOptions parse_doctor_options(const std::vector<std::string>& arguments);
std::string doctor_help(int width_columns);

}  // namespace sidestream::launch
