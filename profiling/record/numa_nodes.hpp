// On how many NUMA nodes of the machine this process may run.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

namespace sidestream::record {

struct NumaNodes {
  int machine = 0;  // nodes with processors
  int process = 0;  // of them, those with a processor that the process may run on
  // How far the farthest of these is from another one, in tenths of what its own memory takes, as
  // the firmware says (ACPI, System Locality Information Table); empty where it does not say.
  std::optional<int> farthest = {};
};

// Nothing where the system does not say. `processors` are those that the process may run on.
std::optional<NumaNodes> numa_nodes(
    const std::vector<int>& processors,
    const std::filesystem::path& nodes = "/sys/devices/system/node");

// "0-3,8,10-11"; what is no list is empty.
std::vector<int> processor_list(const std::string& text);

}  // namespace sidestream::record
