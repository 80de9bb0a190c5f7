#include "launch/trainer/memory_use.hpp"

#include <fmt/format.h>

#include "launch/trainer/or_null.hpp"

namespace sidestream::launch {
namespace {

using nlohmann::json;

std::string gib(std::int64_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30));
}

}  // namespace

std::optional<double> MemoryUse::ratio() const {
  if (!peak_bytes || planned_bytes <= 0) return std::nullopt;
  return static_cast<double>(*peak_bytes) / static_cast<double>(planned_bytes);
}

json to_json(const MemoryUse& use) {
  return {{"of", use.on_gpu ? "gpu" : "host"},
          {"planned_peak_bytes", use.planned_bytes},
          {"measured_peak_bytes", or_null(use.peak_bytes)},
          {"measured_over_planned", or_null(use.ratio())}};
}

std::optional<MemoryUse> memory_use_from(const json& value) {
  if (value.is_null()) return std::nullopt;
  MemoryUse use{.on_gpu = value.at("of") == "gpu", .planned_bytes = value.at("planned_peak_bytes")};
  const json& peak = value.at("measured_peak_bytes");
  if (!peak.is_null()) use.peak_bytes = peak.get<std::int64_t>();
  return use;
}

std::string describe(const MemoryUse& use) {
  if (!use.peak_bytes)
    return fmt::format("memory of rank 0: {} were planned, the peak was not measured",
                       gib(use.planned_bytes));
  return fmt::format("memory of rank 0: {} of its {} at the peak, {} were planned ({:.2f} of it)",
                     gib(*use.peak_bytes), use.on_gpu ? "GPU" : "host", gib(use.planned_bytes),
                     use.ratio().value_or(0));
}

}  // namespace sidestream::launch
