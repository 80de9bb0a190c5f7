#include <nlohmann/json.hpp>

#include "profiling/verify/verification_report.hpp"

namespace sidestream::verify {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json json_of(const std::optional<LossDifference>& loss) {
  if (!loss) return {};
  return {{"pairs", loss->pairs},
          {"base", loss->base},
          {"new", loss->fresh},
          {"difference", loss->difference},
          {"low", loss->low},
          {"high", loss->high},
          {"spread_of_seeds", loss->spread},
          {"verdict", name_of(loss->verdict)}};
}

Json json_of(const std::optional<CurveComparison>& curve) {
  if (!curve) return {};
  return {{"points", curve->points},
          {"identical_points", curve->identical_points},
          {"within_spread", curve->within_spread},
          {"largest_difference", curve->largest_difference},
          {"largest_at_step", curve->largest_at_step},
          {"spread_there", curve->spread_there}};
}

const char* name_of(DifferenceKind kind) {
  switch (kind) {
    case DifferenceKind::kRefused:
      return "not comparable";
    case DifferenceKind::kEnvironment:
      return "environment";
    case DifferenceKind::kSubject:
      break;
  }
  return "subject";
}

Json step_time_of(const Verification& one) {
  Json json = {{"verdict", verdict_word(one)},
               {"base_ms", one.base_ms},
               {"new_ms", one.fresh_ms},
               {"ratio", nullptr},
               {"ratio_low", nullptr},
               {"ratio_high", nullptr},
               {"confidence", kConfidence},
               {"log_sd", nullptr},
               {"smallest_effect", or_null(one.smallest_effect)},
               {"blocks_for_3_pct", or_null(one.blocks_for_effect)}};
  if (!one.step_time) return json;
  json["ratio"] = one.step_time->ratio;
  json["ratio_low"] = one.step_time->low;
  json["ratio_high"] = one.step_time->high;
  json["log_sd"] = one.step_time->log_sd;
  return json;
}

Json convergence_of(const ConvergenceResult& convergence) {
  return {{"verdict", name_of(convergence.verdict)},
          {"reason", convergence.reason},
          {"curve", json_of(convergence.curve)},
          {"final_val_loss", json_of(convergence.final_val_loss)},
          {"final_loss", json_of(convergence.final_loss)}};
}

Json memory_of(const std::optional<MemoryPeak>& memory) {
  if (!memory) return {};
  return {{"base_bytes", memory->base_bytes}, {"new_bytes", memory->fresh_bytes}};
}

Json json_of(const std::vector<Part>& parts) {
  Json list = Json::array();
  for (const Part& part : parts)
    list.push_back({{"name", part.name},
                    {"base_ms", part.base_ms},
                    {"new_ms", part.fresh_ms},
                    {"change_ms", part.change_ms()}});
  return list;
}

Json whole(const Verification& one, const Decision& decision) {
  Json json = {{"schema", 1},
               {"kind", "verification"},
               {"command", one.settings.command},
               {"version", one.version},
               {"environment", one.environment},
               {"base", one.settings.base_flags},
               {"new", one.settings.fresh_flags},
               {"warm_up_steps", one.settings.warm_up}};
  json["differences"] = Json::array();
  for (const Difference& each : one.differences)
    json["differences"].push_back({{"field", each.field},
                                   {"base", each.base},
                                   {"new", each.fresh},
                                   {"kind", name_of(each.kind)}});
  json["blocks"] = Json::array();
  for (const BlockRow& row : one.blocks)
    json["blocks"].push_back({{"block", row.block},
                              {"seed", row.seed},
                              {"base_ms", row.base_ms},
                              {"new_ms", row.fresh_ms}});
  json["step_time"] = step_time_of(one);
  json["parts"] = json_of(one.parts);
  json["convergence"] = convergence_of(one.convergence);
  json["memory"] = memory_of(one.memory);
  json["decision"] = {{"accepted", decision.accepted},
                      {"reason", decision.reason},
                      {"exit_code", static_cast<int>(decision.code)}};
  return json;
}

std::string text_of(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string verification_json(const Verification& one, const Decision& decision) {
  return text_of(whole(one, decision));
}

std::string comparison_json(const Verification& one, const Decision& decision,
                            const TraceChange* traces) {
  Json json = {{"schema", 1}, {"kind", "comparison"}, {"verification", whole(one, decision)}};
  json["trace"] = nullptr;
  if (traces != nullptr)
    json["trace"] = {{"base_steps", traces->base_steps},
                     {"new_steps", traces->fresh_steps},
                     {"parts", json_of(traces->parts)},
                     {"operations", json_of(traces->operations)},
                     {"collectives", json_of(traces->collectives)}};
  return text_of(json);
}

}  // namespace sidestream::verify
