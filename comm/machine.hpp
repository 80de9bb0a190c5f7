// The processors of this machine, as hwloc sees them.
#pragma once

namespace sidestream::comm {

struct Machine {
  int packages = 0;
  int numa_nodes = 0;
  int cores = 0;
  int processors = 0;  // hardware threads that the machine and its control groups allow

  // Whatever this process is bound to; all 0 if unknown.
  static Machine read();
};

}  // namespace sidestream::comm
