#include "launch/commands/bench_collective.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

#include "launch/ceilings/ceilings.hpp"
#include "launch/reporting/text_table.hpp"

namespace sidestream::launch {
namespace {

constexpr std::array<std::size_t, 5> kMebibytes = {1, 4, 16, 64, 256};

using Rates = std::vector<CollectiveRate>;  // by size

Rates rates_of(comm::Communicator& communicator, Collective collective, double seconds) {
  Rates rates;
  for (const std::size_t size : kMebibytes)
    rates.push_back(measure_collective(communicator, collective, size << 20, seconds));
  return rates;
}

// The same over NCCL without compute units. Empty where that is no other way: windows are what its
// copy engines work on.
Rates rates_without_ctas(Session& session, comm::CommunicatorConfig config,
                         const BenchOptions& options, Collective collective) {
  if (session.communicator().backend_name() != "nccl+windows") return {};
  config.nccl.cta_policy = comm::nccl::CtaPolicy::kZero;
  std::vector<std::string> warnings;
  comm::choose_device(config);
  const auto other = comm::make_communicator(session.environment(), config, warnings);
  return rates_of(*other, collective, options.seconds);
}

void add_columns(std::vector<std::string>& row, const CollectiveRate& rate) {
  row.push_back(fmt::format("{:.1f}", rate.seconds * 1e6));
  row.push_back(fmt::format("{:.2f}", rate.algorithm_bytes_per_s() * 1e-9));
  row.push_back(fmt::format("{:.2f}", rate.bus_bytes_per_s() * 1e-9));
}

std::string table_of(const Rates& kernels, const Rates& copies) {
  std::vector<std::string> header = {"MiB", "us", "algorithm GB/s", "bus GB/s"};
  if (!copies.empty()) header.insert(header.end(), {"no CTAs: us", "algorithm GB/s", "bus GB/s"});
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    rows.push_back({fmt::format("{}", kMebibytes[i])});
    add_columns(rows.back(), kernels[i]);
    if (!copies.empty()) add_columns(rows.back(), copies[i]);
  }
  return text_table(header, rows);
}

void keep(const PathRates& rates, Collective collective, int ranks) {
  Ceilings kept = load_ceilings(ceilings_file(), gpu_name()).value_or(Ceilings{});
  if (!kept.device) {
    fmt::print("not kept: `sidestream bench ceilings` without mpirun comes first\n");
    return;
  }
  kept.device->nccl_paths[std::string(name_of(collective))][ranks] = rates;
  save_ceilings(kept, ceilings_file());
  fmt::print("kept in {}: --nccl-ctas auto goes by it\n", ceilings_file().string());
}

}  // namespace

core::ExitCode bench_collective(Session& session, const comm::CommunicatorConfig& config,
                                const BenchOptions& options, Collective collective) {
  const comm::Topology& topology = session.communicator().topology();
  const Rates kernels = rates_of(session.communicator(), collective, options.seconds);
  const Rates copies = rates_without_ctas(session, config, options, collective);
  if (!session.is_first_rank()) return core::ExitCode::kDone;
  fmt::print("{}, {} ranks, {}, fp32; bandwidths as nccl-tests has them\n{}", name_of(collective),
             topology.size, session.communicator().backend_name(), table_of(kernels, copies));
  if (copies.empty()) return core::ExitCode::kDone;
  if (topology.node_count > 1) {
    fmt::print("not kept: the ranks are on several machines\n");
    return core::ExitCode::kDone;
  }
  keep({.kernels_bytes_per_s = kernels.back().bus_bytes_per_s(),
        .copy_engines_bytes_per_s = copies.back().bus_bytes_per_s()},
       collective, topology.size);
  return core::ExitCode::kDone;
}

}  // namespace sidestream::launch
