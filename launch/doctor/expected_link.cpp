#include "launch/doctor/expected_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "launch/doctor/amounts.hpp"
#include "launch/doctor/over_ranks.hpp"

namespace sidestream::launch::doctor {
namespace {

double memory_of_all(const JobFacts& job) {
  double sum = 0;
  for (const RankFacts& rank : job.ranks) sum += rank.memory_bytes_per_s;
  return sum;
}

// The slowest host's fastest link. Nothing where a host does not say how fast its links are.
ExpectedLink expected_between_hosts(const JobFacts& job) {
  const RankFacts* slowest = nullptr;
  for (const std::size_t rank : first_ranks(job)) {
    const NetworkFacts& network = job.ranks[rank].network;
    if (network.bytes_per_s <= 0) return {};
    if (slowest == nullptr || network.bytes_per_s < slowest->network.bytes_per_s)
      slowest = &job.ranks[rank];
  }
  const auto ranks = static_cast<double>(job.ranks.size());
  const double hosts = job.topology.node_count;
  const double sent = 2 * (hosts - 1) / hosts;
  return {.bus_bytes_per_s = 2 * (ranks - 1) / ranks / sent * slowest->network.bytes_per_s,
          .from = fmt::format("the link {} of {}", slowest->network.fastest,
                              rate_text(slowest->network.bytes_per_s))};
}

// Bytes a second out of a rank's GPU to those of all other ranks; 0 where one is reached otherwise.
double nvlinks_to_all(const JobFacts& job, const RankFacts& rank) {
  const record::NvLinks& links = rank.gpu.links;
  if (links.switch_bytes_per_s > 0) return links.switch_bytes_per_s;
  double sum = 0;
  for (const RankFacts& other : job.ranks) {
    if (&other == &rank) continue;
    const auto found = links.to.find(other.gpu.links.bus_id);
    if (found == links.to.end()) return 0;
    sum += found->second;
  }
  return sum;
}

double slowest_nvlinks(const JobFacts& job) {
  double slowest = std::numeric_limits<double>::infinity();
  for (const RankFacts& rank : job.ranks) slowest = std::min(slowest, nvlinks_to_all(job, rank));
  return slowest;
}

}  // namespace

ExpectedLink expected_host_link(const JobFacts& job) {
  if (job.ranks.size() < 2) return {};
  if (job.topology.node_count > 1) return expected_between_hosts(job);
  const double memory = memory_of_all(job);
  if (memory <= 0) return {};
  const auto ranks = static_cast<double>(job.ranks.size());
  return {.bus_bytes_per_s = (ranks - 1) / (ranks * ranks) * memory,
          .from = fmt::format("memory that copies at {}, as just measured", rate_text(memory))};
}

ExpectedLink expected_gpu_link(const JobFacts& job) {
  if (job.topology.node_count > 1) return expected_between_hosts(job);
  if (const double links = slowest_nvlinks(job); links > 0)
    return {
        .bus_bytes_per_s = links,
        .from = fmt::format("NVLinks of {} out of each GPU, as the driver says", rate_text(links))};
  if (job.pcie_bytes_per_s <= 0) return {};
  return {.bus_bytes_per_s = job.pcie_bytes_per_s,
          .from = fmt::format("a PCI bus that copies at {}, as `bench ceilings` measured",
                              rate_text(job.pcie_bytes_per_s))};
}

}  // namespace sidestream::launch::doctor
