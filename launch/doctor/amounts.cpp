#include "launch/doctor/amounts.hpp"

#include <fmt/format.h>

#include <cmath>

#include "launch/doctor/rank_facts.hpp"

namespace sidestream::launch::doctor {

std::string bytes_text(std::int64_t bytes) {
  if (bytes == kUnlimited) return "unlimited";
  constexpr double kKibi = 1024;
  const auto amount = static_cast<double>(bytes);
  if (amount < kKibi * kKibi) return fmt::format("{:.0f} KiB", amount / kKibi);
  if (amount < kKibi * kKibi * kKibi) return fmt::format("{:.0f} MiB", amount / kKibi / kKibi);
  return fmt::format("{:.1f} GiB", amount / kKibi / kKibi / kKibi);
}

std::string rate_text(double bytes_per_s) {
  if (bytes_per_s < 1e9) return fmt::format("{:.0f} MB/s", bytes_per_s * 1e-6);
  return fmt::format("{:.1f} GB/s", bytes_per_s * 1e-9);
}

std::string seconds_text(double seconds) {
  const double size = std::abs(seconds);
  if (size >= 1) return fmt::format("{:.1f} s", seconds);
  if (size >= 1e-3) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.0f} us", seconds * 1e6);
}

}  // namespace sidestream::launch::doctor
