#include "profiling/trace/kineto_metadata.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/number_bounds.hpp"
#include "profiling/ranges/trace_metadata.hpp"
#include "profiling/trace/base_time.hpp"
#include "profiling/trace/decimal.hpp"
#include "profiling/trace/latest_time.hpp"
#include "profiling/trace/most_ranks.hpp"

namespace sidestream::trace {
namespace {

using Json = nlohmann::json;

// Numbers, and numbers that someone wrote as text.
std::optional<std::int64_t> number_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end()) return std::nullopt;
  if (found->is_number_integer()) return found->get<std::int64_t>();
  if (!found->is_string()) return std::nullopt;
  constexpr std::int64_t kNoNumber = -1;
  const std::int64_t value = integer_of(found->get_ref<const std::string&>(), kNoNumber);
  return value == kNoNumber ? std::nullopt : std::optional(value);
}

// Also where it is text, but then of digits alone: "2.5" is no rank.
std::optional<int> rank_in(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  const bool digits = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  const std::int64_t rank = integer_of(digits ? text : "", -1);
  return is_rank_number(rank) ? std::optional(static_cast<int>(rank)) : std::nullopt;
}

bool read_distributed(const Json& object, RankInfo& info) {
  if (!object.is_object()) return false;
  const std::int64_t world_size = number_in(object, "world_size").value_or(0);
  info.world_size = world_size > 0 && world_size <= kMostRanks ? static_cast<int>(world_size) : 0;
  if (const auto backend = object.find("backend"); backend != object.end() && backend->is_string())
    info.backend = backend->get<std::string>();
  const auto found = object.find("rank");
  if (found == object.end()) return false;
  const std::optional<int> rank = rank_in(*found);
  if (rank) info.rank = *rank;
  if (!rank) info.senseless_rank = found->dump(-1, ' ', true, Json::error_handler_t::replace);
  return rank.has_value();
}

void read_devices(const Json& list, RankInfo& info) {
  if (!list.is_array()) return;
  info.says_no_device = list.empty();
  for (const Json& one : list) {
    if (!one.is_object()) continue;
    DeviceProperties device;
    if (const auto name = one.find("name"); name != one.end() && name->is_string())
      device.name = name->get<std::string>();
    device.sm_count = static_cast<int>(number_in(one, "numSms").value_or(0));
    device.compute_major = static_cast<int>(number_in(one, "computeMajor").value_or(0));
    device.compute_minor = static_cast<int>(number_in(one, "computeMinor").value_or(0));
    device.memory_bytes = static_cast<std::uint64_t>(number_in(one, "totalGlobalMem").value_or(0));
    info.devices[static_cast<int>(number_in(one, "id").value_or(0))] = device;
  }
}

constexpr core::NumberBounds kFigure = {0, 1e18};  // fits every type that figures are kept in

// 0: not known, or a figure that cannot be.
double positive_in(const Json& object, std::string_view key,
                   const core::NumberBounds& bounds = kFigure) {
  const auto found = object.find(std::string(key));
  if (found == object.end() || !found->is_number()) return 0;
  const double value = found->get<double>();
  return bounds.hold(value) ? value : 0;
}

double milliseconds_in(const Json& object, std::string_view key) {
  return positive_in(object, key, core::bounds::kMilliseconds);
}

void read_figures(const Json& object, RankInfo& info) {
  if (!object.is_object()) return;
  info.figures = {
      .flops_per_token = positive_in(object, ranges::kFlopsPerToken),
      .flops_per_token_palm = positive_in(object, ranges::kFlopsPerTokenPalm),
      .tokens_per_step = positive_in(object, ranges::kTokensPerStep),
      .peak_flops_per_s = positive_in(object, ranges::kPeakFlopsPerSecond),
      .unprofiled_step_ms = milliseconds_in(object, ranges::kUnprofiledStepMilliseconds),
      .unprofiled_step_deviation_ms = milliseconds_in(object, ranges::kUnprofiledStepDeviation),
      .unprofiled_steps = positive_in(object, ranges::kUnprofiledSteps),
      .unprofiled_data_wait_ms = milliseconds_in(object, ranges::kUnprofiledDataWait)};
  info.figures.merged_ranks = static_cast<int>(
      std::min(positive_in(object, ranges::kMergedRanks), static_cast<double>(kMostRanks)));
  info.dropped_ranges = static_cast<std::uint64_t>(positive_in(object, ranges::kDroppedRanges));
  info.dropped_samples = static_cast<std::uint64_t>(positive_in(object, ranges::kDroppedSamples));
  info.record_ranges_needed = static_cast<std::uint64_t>(positive_in(object, ranges::kRoomNeeded));
  if (const auto from_ns = number_in(object, std::string(ranges::kCompleteFrom).c_str()))
    info.complete_from_ns = std::clamp<std::int64_t>(*from_ns, 0, kLatestNs);
  const auto profiled = object.find(std::string(ranges::kProfiled));
  if (profiled != object.end() && profiled->is_boolean())
    info.figures.profiled = profiled->get<bool>();
}

}  // namespace

bool read_kineto_metadata(std::string_view key, std::string_view text, RankInfo& info) {
  if (key == "baseTimeNanoseconds") {
    read_base_time(text, info);
    return false;
  }
  if (key == "cuda_driver_version" || key == "cuda_runtime_version") {
    int& version = key == "cuda_driver_version" ? info.cuda_driver : info.cuda_runtime;
    version = static_cast<int>(std::clamp<std::int64_t>(integer_of(text, 0), 0, 1'000'000));
    return false;
  }
  const bool figures = key == ranges::kMetadataObject;
  if (key != "distributedInfo" && key != "deviceProperties" && !figures) return false;
  const Json parsed = Json::parse(text, nullptr, false);
  if (parsed.is_discarded()) return false;
  if (key == "distributedInfo") return read_distributed(parsed, info);
  if (figures)
    read_figures(parsed, info);
  else
    read_devices(parsed, info);
  return false;
}

}  // namespace sidestream::trace
