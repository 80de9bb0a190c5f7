#include "profiling/verify/urgent_lines.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "profiling/report/number_at.hpp"
#include "profiling/report/table.hpp"
#include "profiling/statistics/late_rank.hpp"

namespace sidestream::verify {
namespace {

using Json = nlohmann::ordered_json;

std::string duration_at(const Json& object, const char* key) {
  return report::duration_text(object.at(key).get<double>());
}

bool has_text(const Json& object, const char* key) {
  return object.contains(key) && object.at(key).is_string();
}

std::string in_phase(const Json& one) {
  if (!has_text(one, "phase")) return "";
  return " " + statistics::phase_text(one.at("phase").get<std::string>());
}

std::string standing_text(const Json& one) {
  const std::string where = has_text(one, "collective")
                                ? "waits in " + one.at("collective").get<std::string>()
                                : "stands still" + in_phase(one);
  return fmt::format("rank {} {} for {}", one.at("rank").get<int>(), where,
                     duration_at(one, "since_ns"));
}

std::string hang_text(const Json& hang) {
  std::string ranks;
  for (const Json& one : hang.at("ranks"))
    ranks += (ranks.empty() ? "" : ", ") + standing_text(one);
  return fmt::format("{}: {} when the recording ended",
                     hang.at("is_sure").get<bool>() ? "hang" : "cut off", ranks);
}

std::string outlier_text(const Json& one) {
  return fmt::format("step {} took {}, {:.0f} times the median: rank {}{}",
                     one.at("step").get<std::int64_t>(), duration_at(one, "length_ns"),
                     one.at("medians").get<double>(), one.at("rank").get<int>(), in_phase(one));
}

// Nothing where chance may have made it.
std::string late_text(const Json& one) {
  if (report::number_at(one, "cost_low_ns").value_or(0) <= 0) return "";
  return fmt::format("rank {} is late{}, costs the others {} a step", one.at("rank").get<int>(),
                     in_phase(one), duration_at(one, "cost_ns_per_step"));
}

}  // namespace

std::vector<std::string> urgent_lines(const Json& report) {
  std::vector<std::string> lines;
  if (report.contains("hang") && !report.at("hang").is_null())
    lines.push_back(hang_text(report.at("hang")));
  for (const Json& one : report.value("outliers", Json::array()))
    lines.push_back(outlier_text(one));
  for (const Json& one : report.value("stragglers", Json::array())) {
    const std::string text = late_text(one);
    if (!text.empty()) lines.push_back(text);
  }
  return lines;
}

}  // namespace sidestream::verify
