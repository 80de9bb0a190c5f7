#include "launch/reporting/progress_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace sidestream::launch {
namespace {

constexpr double kBytesPerMb = 1e6;

std::string memory_text(const std::optional<std::int64_t>& bytes) {
  return bytes ? fmt::format("{:.0f} MB", static_cast<double>(*bytes) / kBytesPerMb) : "-";
}

std::string mfu_text(const std::optional<double>& mfu) {
  return mfu ? fmt::format("{:.1f} %", *mfu * 100) : "-";
}

std::string eta_text(const std::optional<double>& seconds) {
  return seconds ? duration_text(*seconds) : "-";
}

std::string repeated(const char* piece, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += piece;
  return text;
}

std::string drawn_bar(double fraction, int cells, const BarStyle& style) {
  const int full = static_cast<int>(std::lround(fraction * cells));
  const std::string done = repeated(style.utf8 ? "█" : "#", full);
  const std::string rest = repeated(style.utf8 ? "░" : "-", cells - full);
  if (!style.color) return done + rest;
  return "\033[32m" + done + "\033[2m" + rest + "\033[0m";
}

}  // namespace

std::string progress_line(const StepMetrics& metrics, std::int64_t total_steps) {
  std::string line = fmt::format(
      "epoch {}, step {}/{}, loss {:.4f}, lr {:.2e}, batch_cost {:.4f} s, reader_cost {:.4f} s, "
      "ips {:.4g} samples/s {:.0f} tokens/s, MFU {}, memory {}, ETA {}",
      metrics.epoch, metrics.step, total_steps, metrics.loss, metrics.lr, metrics.batch_cost_s,
      metrics.reader_cost_s, metrics.samples_per_s, metrics.tokens_per_s, mfu_text(metrics.mfu),
      memory_text(metrics.memory_bytes), eta_text(metrics.eta_s));
  if (metrics.val_loss) line += fmt::format(", val_loss {:.4f}", *metrics.val_loss);
  return line;
}

std::string progress_bar(const StepMetrics& metrics, std::int64_t total_steps,
                         const BarStyle& style) {
  constexpr int kShortestBar = 10, kLongestBar = 40;
  std::vector<std::string> parts = {fmt::format("step {}/{}", metrics.step, total_steps),
                                    fmt::format("loss {:.4f}", metrics.loss)};
  if (metrics.val_loss) parts.push_back(fmt::format("val {:.4f}", *metrics.val_loss));
  parts.push_back(fmt::format("{} tok/s", short_number(metrics.tokens_per_s)));
  parts.push_back("ETA " + eta_text(metrics.eta_s));

  std::string text;
  for (const std::string& part : parts) {
    if (static_cast<int>(text.size() + part.size()) + 2 > style.width_columns - 1) break;
    text += (text.empty() ? "" : "  ") + part;
  }
  // The last column stays free: writing into it makes some terminals wrap.
  const int room = style.width_columns - 1 - static_cast<int>(text.size()) - 2;
  if (room < kShortestBar) return text;
  const double done = static_cast<double>(metrics.step) /
                      static_cast<double>(std::max<std::int64_t>(1, total_steps));
  return drawn_bar(std::clamp(done, 0.0, 1.0), std::min(room, kLongestBar), style) + "  " + text;
}

std::string duration_text(double seconds) {
  constexpr std::int64_t kMinute = 60, kHour = 3600, kDay = 86400;
  if (!std::isfinite(seconds) || seconds < 0 || seconds > 1e9) return "-";
  const auto total = static_cast<std::int64_t>(std::llround(seconds));
  const std::int64_t hours = total % kDay / kHour, minutes = total % kHour / kMinute,
                     rest = total % kMinute;
  if (total >= kDay)
    return fmt::format("{}d {:02}:{:02}:{:02}", total / kDay, hours, minutes, rest);
  return fmt::format("{}:{:02}:{:02}", hours, minutes, rest);
}

std::string short_number(double value) {
  if (!std::isfinite(value)) return "-";
  if (std::abs(value) >= 1e9) return fmt::format("{:.2f}G", value / 1e9);
  if (std::abs(value) >= 1e6) return fmt::format("{:.2f}M", value / 1e6);
  if (std::abs(value) >= 1e4) return fmt::format("{:.1f}k", value / 1e3);
  if (std::abs(value) >= 100 || value == std::floor(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.1f}", value);
}

}  // namespace sidestream::launch
