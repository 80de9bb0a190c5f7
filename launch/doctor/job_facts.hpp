// What all ranks have found together: what the checks judge.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "comm/topology.hpp"
#include "launch/doctor/model_need.hpp"
#include "launch/doctor/rank_facts.hpp"

namespace sidestream::launch::doctor {

// How the ranks reach each other through one communicator.
struct LinkFacts {
  std::string backend = {};
  std::string problem = {};    // why they do not; empty: they do
  double barrier_s = 0;        // median
  double bus_bytes_per_s = 0;  // of an all-reduce, 2 (n - 1) / n x bytes / time; 0: one rank
};

struct JobFacts {
  comm::Topology topology = {.hosts = {"localhost"}};
  std::vector<RankFacts> ranks = {RankFacts{}};
  comm::DeviceWish wish = comm::DeviceWish::kAuto;
  ModelNeed need = {};
  std::optional<LinkFacts> host_link = {};  // empty: not tried
  std::optional<LinkFacts> gpu_link = {};
  std::vector<double> clock_offsets_s = {};  // of each rank's realtime clock to that of rank 0
  double pcie_bytes_per_s = 0;               // host to device, as `bench ceilings` measured; 0: not
  bool has_ceilings = false;                 // `bench ceilings` has run here
};

}  // namespace sidestream::launch::doctor
