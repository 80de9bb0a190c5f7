#include "launch/assembly/offload_assembly.hpp"

#include <fmt/format.h>

#include "comm/cuda/stream_copies.hpp"
#include "core/base/error.hpp"
#include "launch/assembly/gib_text.hpp"
#include "launch/options/offload.hpp"
#include "launch/options/train_parser.hpp"

namespace sidestream::launch {

bool fits_host(const PinnedNeed& need) {
  if (!need.usable_bytes || need.rank_bytes == 0) return true;
  return need.pinned_bytes() + need.other_bytes <= *need.usable_bytes;
}

void require_host_memory(const TrainOptions& options, const PinnedNeed& need) {
  if (fits_host(need)) return;
  throw core::ConfigError(
      fmt::format("--offload {} needs {} of pinned memory on this host for {} rank(s), and {} "
                  "beside it; {} are "
                  "free: take fewer ranks on a host, {}or leave a part of --offload out",
                  offload_of(options).text(), gib_text(need.pinned_bytes()), need.ranks,
                  gib_text(need.other_bytes), gib_text(*need.usable_bytes),
                  offload_of(options).optimizer ? "--zero 1, --optimizer-state-dtype bf16, "
                                                : "a smaller --batch-size-per-rank, "));
}

void offload_residuals(model::LanguageModel& model, const TrainOptions& options,
                       const DeviceSession& device) {
  const model::ModelConfig& config = options.model.config;
  if (config.residuals == model::ResidualPlace::kDevice) return;
  const auto store = std::make_shared<model::ResidualStore>(comm::cuda::make_stream_copies(
      device.driver(), parallel::DeviceTools::of(device.device()).current_stream,
      "--offload residuals"));
  const std::int64_t bytes = options.data.batch_size_per_rank * sequence_length(options) *
                             config.width *
                             static_cast<std::int64_t>(model.parameters().front().element_size());
  store->reserve(static_cast<std::size_t>(model::offloaded_blocks(config)),
                 static_cast<std::size_t>(bytes));
  model.keep_residuals_in(store);
}

}  // namespace sidestream::launch
