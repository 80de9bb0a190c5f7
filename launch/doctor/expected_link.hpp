// What an all-reduce should reach on this hardware: the judge of what was measured.
#pragma once

#include <string>

#include "launch/doctor/job_facts.hpp"

namespace sidestream::launch::doctor {

struct ExpectedLink {
  double bus_bytes_per_s = 0;  // 0: not known
  std::string from = {};       // what it follows from
};

// Ranks of one host: of B bytes on n ranks, n B are read and n B written, so that with memory that
// copies at M bytes/s (read + written) an all-reduce takes 2 n B / M at best, and its bus bandwidth
// is (n - 1) / n^2 M. Several hosts, m of them, n ranks: every host sends 2 (m - 1) / m B over its
// link.
ExpectedLink expected_host_link(const JobFacts& job);

// GPUs of one host: where each of them reaches all others by NVLinks, the slowest one's links, for
// a ring sends 2 (n - 1) / n of the bytes out of every GPU; else the PCI bus.
ExpectedLink expected_gpu_link(const JobFacts& job);

}  // namespace sidestream::launch::doctor
