#include "launch/ceilings/roofs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "launch/ceilings/datasheet.hpp"

namespace sidestream::launch {
namespace {

// Of the cores that were measured, the part that a rank computes on: what all of them reach
// together is no roof of one rank.
double share_of_rank(const advice::Facts& facts, int cores) {
  const auto threads = facts.environment_number("threads_per_rank");
  if (!threads || cores <= 0) return 1;
  return std::clamp(*threads / cores, 1.0 / cores, 1.0);
}

double link_of(const LinkRates& links, const JoinedRanks& ranks) {
  if (ranks.hosts > 1) return 0;
  const auto link = links.find(ranks.count);
  return link == links.end() ? 0 : link->second;
}

void fill_from_datasheet(const DatasheetPeaks& peaks, advice::Ceilings& roofs) {
  for (const auto& [dtype, peak] : peaks.flops_per_s) {
    if (roofs.flops_per_s.emplace(dtype, peak).second) roofs.of_datasheet.insert(dtype);
  }
  if (roofs.memory_bytes_per_s > 0) return;
  roofs.memory_bytes_per_s = peaks.memory_bytes_per_s;
  roofs.of_datasheet.insert("memory");
}

}  // namespace

JoinedRanks joined_ranks(const advice::Facts& facts) {
  return {.count = facts.world_size,
          .hosts = static_cast<int>(facts.environment_number("nodes").value_or(1))};
}

std::optional<advice::Ceilings> roofs_of_processor(const Ceilings& stored,
                                                   const advice::Facts& facts) {
  const auto processor = facts.environment.find("processor");
  if (processor == facts.environment.end() || processor->second != stored.processor)
    return std::nullopt;
  const double share = share_of_rank(facts, stored.cores);
  return advice::Ceilings{
      .flops_per_s = {{"fp32", stored.fp32_flops_per_s * share},
                      {"bf16", stored.bf16_flops_per_s * share}},
      .memory_bytes_per_s = stored.memory_bytes_per_s * share,
      .link_bytes_per_s = link_of(stored.link_bytes_per_s, joined_ranks(facts)),
      .source = fmt::format("a rank's part, {:.3g} of what was measured on {} cores of {}", share,
                            stored.cores, stored.processor)};
}

std::optional<advice::Ceilings> roofs_of_device(const std::optional<Ceilings>& stored,
                                                const std::string& device_name,
                                                const JoinedRanks& ranks,
                                                std::uint64_t memory_bytes) {
  const bool measured = stored && stored->device && stored->device->name == device_name;
  const auto peaks = datasheet_peaks(device_name, memory_bytes);
  if (!measured && !peaks) return std::nullopt;
  advice::Ceilings roofs;
  if (measured) {
    roofs = {.flops_per_s = stored->device->flops_per_s,
             .memory_bytes_per_s = stored->device->memory_bytes_per_s,
             .host_to_device_bytes_per_s = stored->device->host_to_device_bytes_per_s,
             .device_to_host_bytes_per_s = stored->device->device_to_host_bytes_per_s,
             .link_bytes_per_s = link_of(stored->device->link_bytes_per_s, ranks),
             .source = "measured on " + device_name};
    std::erase_if(roofs.flops_per_s, [](const auto& one) { return one.second <= 0; });
  }
  if (peaks) fill_from_datasheet(*peaks, roofs);
  if (!measured) roofs.source = "datasheet of " + device_name + ", not measured";
  return roofs;
}

}  // namespace sidestream::launch
