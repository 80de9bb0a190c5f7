#include "launch/commands/bench_collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "launch/ceilings/ceilings.hpp"
#include "launch/options/byte_sizes.hpp"
#include "launch/reporting/text_table.hpp"

namespace sidestream::launch {
namespace {

using Rates = std::vector<CollectiveRate>;  // by size

// Up to the size where a stop was asked for.
Rates rates_of(Session& session, comm::Communicator& communicator, const BenchOptions& options,
               Collective collective) {
  const CollectiveKind kind{.collective = collective,
                            .dtype = options.dtype.value_or(core::DType::kFloat32)};
  Rates rates;
  for (const std::size_t bytes : bench_sizes(options)) {
    rates.push_back(measure_collective(
        communicator, kind, bytes,
        {.seconds = options.seconds, .repeats = options.repeats, .stop_requested = [&] {
           return session.stop_requested();
         }}));
    if (rates.back().stopped) break;
  }
  return rates;
}

// The same over NCCL without compute units. Empty where that is no other way: its copy engines work
// on windows, and gather only.
Rates rates_without_ctas(Session& session, comm::CommunicatorConfig config,
                         const BenchOptions& options, Collective collective) {
  if (session.communicator().backend_name() != "nccl+windows") return {};
  if (collective != Collective::kAllGather) return {};
  config.nccl.cta_policy = comm::nccl::CtaPolicy::kZero;
  std::vector<std::string> warnings;
  comm::choose_device(config);
  const auto other = comm::make_communicator(session.environment(), config, warnings);
  return rates_of(session, *other, options, collective);
}

void add_columns(std::vector<std::string>& row, const CollectiveRate& rate) {
  if (rate.repeats == 0) {  // asked to stop before the first one
    row.insert(row.end(), {"-", "-", "-", "-", "0"});
    return;
  }
  row.push_back(fmt::format("{:.2f}", rate.seconds * 1e6));
  row.push_back(fmt::format("{:.2f}", rate.least_seconds * 1e6));
  row.push_back(fmt::format("{:.4g}", rate.algorithm_bytes_per_s() * 1e-9));
  row.push_back(fmt::format("{:.4g}", rate.bus_bytes_per_s() * 1e-9));
  row.push_back(fmt::format("{}", rate.repeats));
}

std::string table_of(const Rates& kernels, const Rates& copies) {
  const std::vector<std::string> columns = {"us", "least us", "algorithm GB/s", "bus GB/s",
                                            "repeats"};
  std::vector<std::string> header = {"size", "bytes"};
  header.insert(header.end(), columns.begin(), columns.end());
  if (!copies.empty()) header.insert(header.end(), columns.begin(), columns.end());
  if (!copies.empty()) header[header.size() - columns.size()] = "no CTAs: us";
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    rows.push_back({byte_size_text(kernels[i].bytes), fmt::format("{}", kernels[i].bytes)});
    add_columns(rows.back(), kernels[i]);
    if (i < copies.size()) add_columns(rows.back(), copies[i]);
  }
  return text_table(header, rows);
}

void keep(const PathRates& rates, int ranks) {
  bool is_kept = false;
  update_ceilings(ceilings_file(), gpu_name(), [&](std::optional<Ceilings> stored) {
    is_kept = stored && stored->device;
    if (!is_kept) return std::optional<Ceilings>();
    stored->device->gather_paths[ranks] = rates;
    return stored;
  });
  if (is_kept) {
    fmt::print("kept in {}: --nccl-ctas auto goes by it\n", ceilings_file().string());
  } else {
    fmt::print("not kept: `sidestream bench ceilings` without mpirun comes first\n");
  }
}

// What one size says about the way holds for weights, whose buckets are large.
void keep_if_telling(const Rates& kernels, const Rates& copies, const comm::Topology& topology) {
  constexpr std::size_t kLarge = std::size_t{32} << 20;
  const auto by_size = [](const CollectiveRate& one, const CollectiveRate& other) {
    return one.bytes < other.bytes;
  };
  const auto largest = std::max_element(kernels.begin(), kernels.end(), by_size);
  const CollectiveRate& copied = copies[static_cast<std::size_t>(largest - kernels.begin())];
  if (topology.node_count > 1) {
    fmt::print("not kept: the ranks are on several machines\n");
  } else if (largest->bytes < kLarge) {
    fmt::print("not kept: --nccl-ctas auto goes by buffers of {} and more\n",
               byte_size_text(kLarge));
  } else {
    keep({.kernels_bytes_per_s = largest->bus_bytes_per_s(),
          .copy_engines_bytes_per_s = copied.bus_bytes_per_s()},
         topology.size);
  }
}

}  // namespace

core::ExitCode bench_collective(Session& session, const comm::CommunicatorConfig& config,
                                const BenchOptions& options, Collective collective) {
  const comm::Topology& topology = session.communicator().topology();
  const Rates kernels = rates_of(session, session.communicator(), options, collective);
  const bool stopped_early = kernels.back().stopped;
  const Rates copies =
      stopped_early ? Rates{} : rates_without_ctas(session, config, options, collective);
  const bool stopped = stopped_early || (!copies.empty() && copies.back().stopped);
  const core::ExitCode code = stopped ? core::ExitCode::kPreempted : core::ExitCode::kDone;
  if (!session.is_first_rank()) return code;
  fmt::print("{}, {} ranks, {}, {}; bandwidths as nccl-tests has them\n{}", name_of(collective),
             topology.size, session.communicator().backend_name(),
             short_name_of(options.dtype.value_or(core::DType::kFloat32)),
             table_of(kernels, copies));
  if (!copies.empty() && !stopped) keep_if_telling(kernels, copies, topology);
  return code;
}

}  // namespace sidestream::launch
