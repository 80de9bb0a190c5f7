#include "profiling/verify/trace_comparability.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

namespace sidestream::verify {
namespace {

using analysis::Analysis;

// Of the first rank that says so.
trace::RunFigures figures_of(const Analysis& all) {
  for (const analysis::RankView& rank : all.ranks) {
    if (rank.timeline->info.figures.flops_per_token > 0) return rank.timeline->info.figures;
  }
  return {};
}

std::string devices_of(const Analysis& all) {
  std::set<std::string> names;
  for (const analysis::RankView& rank : all.ranks) {
    if (rank.activity.where != analysis::Where::kDevice) continue;
    for (const auto& [number, device] : rank.timeline->info.devices) names.insert(device.name);
    if (rank.timeline->info.devices.empty()) names.insert("a device");
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " and ") + name;
  return text.empty() ? "a processor" : text;
}

// "CUDA 13.0, driver 13.1"; empty when no file says.
std::string cuda_of(const Analysis& all) {
  int runtime = 0, driver = 0;
  for (const analysis::RankView& rank : all.ranks) {
    runtime = std::max(runtime, rank.timeline->info.cuda_runtime);
    driver = std::max(driver, rank.timeline->info.cuda_driver);
  }
  const auto version = [](int number) {  // 12090 for 12.9
    return fmt::format("{}.{}", number / 1000, number % 1000 / 10);
  };
  if (runtime == 0 && driver == 0) return "";
  return fmt::format("CUDA {}, driver {}", version(runtime), version(driver));
}

// Of the time in operations, the part whose names the other side has too.
double known_share(const Analysis& one, const Analysis& other) {
  std::set<std::string> names;
  for (const analysis::Operation& operation : other.operations) names.insert(operation.name);
  double known = 0;
  for (const analysis::Operation& operation : one.operations)
    known += names.contains(operation.name) ? operation.share : 0;
  return known;
}

// By the shapes of its operations; 0: no shape was recorded.
double flops_of_step(const Analysis& all) {
  double flops = 0;
  for (const analysis::Operation& one : all.operations) flops += one.flops.total().value_or(0);
  return flops / static_cast<double>(std::max<std::int64_t>(1, all.operation_steps.steps));
}

// The same operations with other shapes are another model or batch; other operations (fused ones,
// compiled ones) may not say all that they compute.
void compare_shapes(const Analysis& base, const Analysis& fresh, std::vector<Difference>& found) {
  constexpr double kTolerance = 0.02, kSameOperations = 0.95;
  const double left = flops_of_step(base), right = flops_of_step(fresh);
  if (left <= 0 || right <= 0 || std::abs(right / left - 1) <= kTolerance) return;
  const bool same =
      known_share(base, fresh) >= kSameOperations && known_share(fresh, base) >= kSameOperations;
  found.push_back({"FLOPs of a step by the shapes", fmt::format("{:.4g}", left),
                   fmt::format("{:.4g}", right),
                   same ? DifferenceKind::kRefused : DifferenceKind::kEnvironment});
}

void add(std::vector<Difference>& found, const std::string& field, const std::string& base,
         const std::string& fresh) {
  if (base != fresh) found.push_back({field, base, fresh, DifferenceKind::kRefused});
}

}  // namespace

std::vector<Difference> differences_of(const Analysis& base, const Analysis& fresh) {
  std::vector<Difference> found;
  add(found, "world_size", std::to_string(base.set->world_size),
      std::to_string(fresh.set->world_size));
  add(found, "device", devices_of(base), devices_of(fresh));
  const std::string base_cuda = cuda_of(base), fresh_cuda = cuda_of(fresh);
  if (!base_cuda.empty() && !fresh_cuda.empty()) add(found, "CUDA", base_cuda, fresh_cuda);
  const trace::RunFigures left = figures_of(base), right = figures_of(fresh);
  if (left.flops_per_token > 0 && right.flops_per_token > 0) {
    add(found, "FLOPs of a token", fmt::format("{:.6g}", left.flops_per_token),
        fmt::format("{:.6g}", right.flops_per_token));
    add(found, "tokens of a step", fmt::format("{:.6g}", left.tokens_per_step),
        fmt::format("{:.6g}", right.tokens_per_step));
    return found;
  }
  compare_shapes(base, fresh, found);
  constexpr double kLeast = 0.5;
  const double of_base = known_share(base, fresh), of_fresh = known_share(fresh, base);
  if (of_base < kLeast && of_fresh < kLeast)
    found.push_back({kOperations, fmt::format("{:.0f} % of its own", (1 - of_base) * 100),
                     fmt::format("{:.0f} % of its own", (1 - of_fresh) * 100),
                     DifferenceKind::kRefused});
  return found;
}

std::string identity_of(const Analysis& all) {
  std::string text = fmt::format("{} events", all.set->events);
  for (const analysis::RankView& rank : all.ranks) {
    if (rank.steps.empty()) continue;
    const analysis::Interval& first = rank.steps.front().window;
    text += fmt::format(", {} {} {}", rank.timeline->info.rank,
                        first.start_ns + rank.timeline->info.base_ns, first.length_ns());
  }
  return text;
}

}  // namespace sidestream::verify
