#include "profiling/verify/side_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/json_fault.hpp"
#include "profiling/report/number_at.hpp"

namespace sidestream::verify {
namespace {

using report::number_at;
using Json = nlohmann::ordered_json;

std::string text_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_string() ? "" : found->get<std::string>();
}

std::string words_of(const std::string& verdict) {
  if (verdict == "io") return "waiting for input";
  if (verdict == "cpu") return "the host";
  if (verdict == "gpu" || verdict == "compute") return "computing";
  return verdict == "comm" ? "communication" : verdict;
}

TopOperation operation_of(const Json& one, double steps, double step_ms) {
  TopOperation result{.name = text_at(one, "name"),
                      .step_ms = one.at("total_ns").get<double>() * 1e-6 / steps,
                      .flops_per_s = number_at(one, "flops_per_s"),
                      .bytes_per_s = number_at(one, "bytes_per_s"),
                      .bound = text_at(one, "roofline_bound"),
                      .cause = text_at(one, "cause")};
  result.share_of_step =
      number_at(one, "step_share").value_or(step_ms > 0 ? result.step_ms / step_ms : 0);
  result.share_of_roof = number_at(one, "share_of_roof");
  // Held up by something else, it would not get faster at its roof.
  if (result.share_of_roof && (result.bound == "compute" || result.bound == "memory"))
    result.room_ms = result.step_ms * std::max(0.0, 1 - *result.share_of_roof);
  return result;
}

// As sure as it is.
std::string verdict_of(const Json& report) {
  const auto sure = report.find("verdict_sure");
  const bool unsure = sure != report.end() && *sure == false;
  return unsure ? text_at(report, "verdict_text") : words_of(text_at(report, "verdict"));
}

SideProfile read_report(const std::string& folder, const Json& report, std::size_t operations) {
  SideProfile side{.folder = folder,
                   .urgent = report.at("urgent").get<std::vector<std::string>>(),
                   .verdict = verdict_of(report)};
  for (const Json& part : report.at("overview").at("mean_step")) {
    const std::string name = part.at("part");
    const double milliseconds = part.at("time_ns").get<double>() * 1e-6;
    if (name == "step") side.step_ms = milliseconds;
    side.budget.push_back({name, milliseconds});
  }
  const auto ceilings = report.find("ceilings");
  side.has_roofs = ceilings != report.end() && !ceilings->is_null();
  if (const auto metrics = report.find("metrics"); metrics != report.end())
    side.profiler_off = number_at(*metrics, "profiler_cost") == 0;
  const double steps = std::max(1.0, report.at("overview").at("operation_steps").get<double>());
  for (const Json& one : report.at("top_ops")) {
    if (side.top.size() < operations) side.top.push_back(operation_of(one, steps, side.step_ms));
  }
  for (const Json& one : report.at("advice"))
    side.advice.push_back({.title = text_at(one, "title"),
                           .bound_pct = number_at(one, "gain_ceiling_pct"),
                           .evidence = text_at(one, "evidence_text"),
                           .fix = text_at(one, "fix"),
                           .false_if = text_at(one, "false_if"),
                           .check = text_at(one, "check"),
                           .comes_first = one.value("comes_first", false)});
  return side;
}

}  // namespace

SideProfile side_profile(const std::string& folder, const Json& report, std::size_t operations) {
  try {
    return read_report(folder, report, operations);
  } catch (const nlohmann::json::exception& error) {
    throw core::Error(fmt::format("{}: expected a report of this version, found: {}", folder,
                                  core::json_words(error)));
  }
}

}  // namespace sidestream::verify
