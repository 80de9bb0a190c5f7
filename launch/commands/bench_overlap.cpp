#include "launch/commands/bench_overlap.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "launch/ceilings/overlap_rate.hpp"
#include "launch/device/device_session.hpp"
#include "launch/options/byte_sizes.hpp"
#include "launch/process/tuning.hpp"
#include "launch/reporting/text_table.hpp"

namespace sidestream::launch {
namespace {

// As a training of this type sets LibTorch up on a GPU.
TrainOptions training_with(core::DType dtype) {
  TrainOptions options;
  if (dtype == core::DType::kBFloat16) options.precision = Precision::kBf16;
  if (dtype == core::DType::kFloat16) options.precision = Precision::kFp16;
  return options;
}

std::string table_of(const std::vector<OverlapRate>& rates) {
  std::vector<std::vector<std::string>> rows;
  for (const OverlapRate& rate : rates) {
    rows.push_back({byte_size_text(rate.bytes), fmt::format("{:.3f}", rate.compute_s * 1e3),
                    fmt::format("{:.3f}", rate.collective_s * 1e3),
                    fmt::format("{:.3f}", rate.together_s * 1e3),
                    fmt::format("{:.1f}", rate.hidden_share() * 100),
                    fmt::format("{:+.1f}", rate.compute_slowdown() * 100),
                    fmt::format("{}", rate.repeats)});
  }
  return text_table({"size", "compute ms", "collective ms", "together ms", "hidden %",
                     "compute slower by %", "repeats"},
                    rows);
}

}  // namespace

core::ExitCode bench_overlap(Session& session, const BenchOptions& options) {
  comm::Communicator& communicator = session.communicator();
  const core::DType dtype = options.dtype.value_or(core::DType::kFloat32);
  const int threads = pin_and_set_threads(communicator, options.threads);
  flush_denormals_on_all_threads(true);
  const DeviceSession device(communicator,
                             communicator.device() ? training_with(dtype) : TrainOptions{});
  std::vector<OverlapRate> rates;
  for (const std::size_t bytes : bench_sizes(options)) {
    rates.push_back(measure_overlap(communicator, {.dtype = dtype}, bytes, device.device(),
                                    {.seconds = options.seconds,
                                     .repeats = options.repeats,
                                     .stop_requested = [&] { return session.stop_requested(); }}));
    if (rates.back().stopped) break;
  }
  if (session.is_first_rank())
    fmt::print("allreduce beside matrix products, {} ranks x {} thread(s), {}, {}, {}\n{}",
               communicator.size(), threads, device.name(), communicator.backend_name(),
               short_name_of(dtype), table_of(rates));
  return rates.back().stopped ? core::ExitCode::kPreempted : core::ExitCode::kDone;
}

}  // namespace sidestream::launch
