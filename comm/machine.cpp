#include "comm/machine.hpp"

#include <hwloc.h>

#include <algorithm>

namespace sidestream::comm {

Machine Machine::read() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return {};
  Machine machine;
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_CORE})
    hwloc_topology_set_type_filter(topology, type, HWLOC_TYPE_FILTER_KEEP_ALL);
  if (hwloc_topology_load(topology) == 0) {
    const auto count = [&](hwloc_obj_type_t type) {
      return std::max(0, hwloc_get_nbobjs_by_type(topology, type));
    };
    machine = {.packages = count(HWLOC_OBJ_PACKAGE),
               .numa_nodes = count(HWLOC_OBJ_NUMANODE),
               .cores = count(HWLOC_OBJ_CORE),
               .processors = hwloc_bitmap_weight(hwloc_topology_get_allowed_cpuset(topology))};
  }
  hwloc_topology_destroy(topology);
  return machine;
}

}  // namespace sidestream::comm
