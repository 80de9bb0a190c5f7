#include <nlohmann/json.hpp>

#include "profiling/report/or_null.hpp"
#include "profiling/verify/remarks.hpp"
#include "profiling/verify/verification_report.hpp"

namespace sidestream::verify {
namespace {

using report::or_null;
using Json = nlohmann::ordered_json;

Json json_of(const std::optional<LossDifference>& loss) {
  if (!loss) return {};
  return {{"pairs", loss->pairs},
          {"base", loss->base},
          {"new", loss->fresh},
          {"difference", loss->difference},
          {"low", or_null(loss->low)},
          {"high", or_null(loss->high)},
          {"spread_of_seeds", or_null(loss->spread)},
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
  return "compared";
}

Json low_of(const std::optional<statistics::Interval>& interval) {
  return interval ? Json(interval->low) : Json();
}
Json high_of(const std::optional<statistics::Interval>& interval) {
  return interval ? Json(interval->high) : Json();
}

Json step_time_of(const Verification& one) {
  Json json = {{"verdict", verdict_word(one)},
               {"base_ms", one.base_ms},
               {"base_low_ms", low_of(one.base_interval_ms)},
               {"base_high_ms", high_of(one.base_interval_ms)},
               {"new_ms", one.fresh_ms},
               {"new_low_ms", low_of(one.fresh_interval_ms)},
               {"new_high_ms", high_of(one.fresh_interval_ms)},
               {"ratio", nullptr},
               {"ratio_low", nullptr},
               {"ratio_high", nullptr},
               {"confidence", kConfidence},
               {"log_sd", nullptr},
               {"speed_up", nullptr},
               {"speed_up_low", nullptr},
               {"speed_up_high", nullptr},
               {"smallest_effect", or_null(one.smallest_effect)},
               {"blocks_for_3_pct", or_null(one.blocks_for_effect)}};
  if (!one.step_time) return json;
  json["ratio"] = one.step_time->ratio;
  json["ratio_low"] = one.step_time->low;
  json["ratio_high"] = one.step_time->high;
  json["log_sd"] = one.step_time->log_sd;
  json["speed_up"] = 1 / one.step_time->ratio;
  json["speed_up_low"] = 1 / one.step_time->high;
  json["speed_up_high"] = 1 / one.step_time->low;
  return json;
}

Json convergence_of(const ConvergenceResult& convergence) {
  return {{"verdict", name_of(convergence.verdict)},
          {"reason", convergence.reason},
          {"curve", json_of(convergence.curve)},
          {"final_val_loss", json_of(convergence.final_val_loss)},
          {"final_loss", json_of(convergence.final_loss)}};
}

Json json_of(const std::vector<LossPoint>& points) {
  Json list = Json::array();
  for (const LossPoint& one : points) list.push_back({one.step, one.loss});  // NaN becomes null
  return list;
}

Json json_of(const std::vector<LossCurve>& curves) {
  Json list = Json::array();
  for (const LossCurve& one : curves)
    list.push_back({{"seed", one.seed},
                    {"loss", json_of(one.training)},
                    {"val_loss", json_of(one.validation)}});
  return list;
}

Json curves_of(const Verification& one) {
  if (one.base_curves.empty()) return {};
  return {{"base", json_of(one.base_curves)}, {"new", json_of(one.fresh_curves)}};
}

Json memory_of(const std::optional<MemoryPeak>& memory) {
  if (!memory) return {};
  return {{"base_bytes", memory->base_bytes}, {"new_bytes", memory->fresh_bytes}};
}

Json json_of(const MachineState& state) {
  return {{"cpu_mhz", or_null(state.cpu_mhz)},
          {"gpu_mhz", or_null(state.gpu_mhz)},
          {"gpu_held_down", or_null(state.gpu_held_down)},
          {"foreign_cpu", or_null(state.foreign_cpu)}};
}

Json machine_of(const std::optional<MachineChange>& change) {
  if (!change) return {};
  return {{"base", json_of(change->base)},
          {"new", json_of(change->fresh)},
          {"clock_ratio", or_null(change->ratio())}};
}

Json json_of(const std::vector<Part>& parts) {
  Json list = Json::array();
  for (const Part& part : parts)
    list.push_back({{"name", part.name},
                    {"base_ms", part.base_ms},
                    {"new_ms", part.fresh_ms},
                    {"change_ms", part.change_ms()},
                    {"low_ms", part.interval_ms ? Json(part.interval_ms->low) : Json()},
                    {"high_ms", part.interval_ms ? Json(part.interval_ms->high) : Json()}});
  return list;
}

Json json_of(const TopOperation& one) {
  return {{"name", one.name},
          {"step_ms", one.step_ms},
          {"share_of_step", one.share_of_step},
          {"flops_per_s", or_null(one.flops_per_s)},
          {"bytes_per_s", or_null(one.bytes_per_s)},
          {"roofline_bound", one.bound.empty() ? Json() : Json(one.bound)},
          {"share_of_roof", or_null(one.share_of_roof)},
          {"room_ms", or_null(one.room_ms)},
          {"cause", one.cause.empty() ? Json() : Json(one.cause)}};
}

Json json_of(const SideProfile& side) {
  Json json = {{"folder", side.folder},
               {"urgent", side.urgent},
               {"verdict", side.verdict.empty() ? Json() : Json(side.verdict)},
               {"step_ms", side.step_ms}};
  for (const char* list : {"budget", "top_ops", "advice"}) json[list] = Json::array();
  for (const BudgetPart& part : side.budget)
    json["budget"].push_back({{"part", part.name}, {"step_ms", part.step_ms}});
  for (const TopOperation& one : side.top) json["top_ops"].push_back(json_of(one));
  for (const AdviceLine& one : side.advice)
    json["advice"].push_back({{"title", one.title},
                              {"comes_first", one.comes_first},
                              {"gain_ceiling_pct", or_null(one.bound_pct)},
                              {"evidence", one.evidence},
                              {"false_if", one.false_if},
                              {"check", one.check},
                              {"fix", one.fix}});
  return json;
}

Json profiles_of(const Verification& one) {
  if (!one.profiles) return {{"base", nullptr}, {"new", nullptr}, {"needs", one.profiles_missing}};
  return {{"base", json_of(one.profiles->base)},
          {"new", json_of(one.profiles->fresh)},
          {"needs", nullptr}};
}

Json trace_of(const Verification& one) {
  if (!one.profiles) return {};
  const TraceChange& traces = one.profiles->change;
  return {{"base_steps", traces.base_steps},          {"new_steps", traces.fresh_steps},
          {"parts", json_of(traces.parts)},           {"phases", json_of(traces.phases)},
          {"operations", json_of(traces.operations)}, {"collectives", json_of(traces.collectives)},
          {"base_windows", traces.base_windows},      {"new_windows", traces.fresh_windows}};
}

Json json_of(const std::vector<BlockRow>& blocks) {
  Json list = Json::array();
  for (const BlockRow& row : blocks)
    list.push_back({{"block", row.block},
                    {"seed", row.seed},
                    {"base_ms", row.base_ms},
                    {"new_ms", row.fresh_ms}});
  return list;
}

// Of the base against itself on one batch.
Json proof_of(const std::optional<InputProof>& proof) {
  if (!proof) return {};
  const auto& ratio = proof->step_time;
  return {{"finding", proof->finding},
          {"gain_ceiling_pct", or_null(proof->bound_pct)},
          {"blocks", json_of(proof->blocks)},
          {"ratio", ratio ? Json(ratio->ratio) : Json()},
          {"ratio_low", ratio ? Json(ratio->low) : Json()},
          {"ratio_high", ratio ? Json(ratio->high) : Json()},
          {"verdict", proof->verdict},
          {"reason", proof->reason}};
}

Json trials_of(const Verification& one) {
  Json list = Json::array();
  for (const Trial& trial : one.trials)
    list.push_back({{"time", trial.time},
                    {"base", trial.base_flags},
                    {"new", trial.fresh_flags},
                    {"verdict", trial.verdict},
                    {"accepted", trial.accepted},
                    {"reason", trial.reason}});
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
  json["blocks"] = json_of(one.blocks);
  json["step_time"] = step_time_of(one);
  json["parts"] = json_of(one.parts);
  json["convergence"] = convergence_of(one.convergence);
  json["curves"] = curves_of(one);
  json["memory"] = memory_of(one.memory);
  json["machine"] = machine_of(one.machine);
  json["remarks"] = remarks_of(one);
  json["decision"] = {{"accepted", decision.accepted},
                      {"reason", decision.reason},
                      {"exit_code", static_cast<int>(decision.code)}};
  json["profiles"] = profiles_of(one);
  json["proof"] = proof_of(one.proof);
  json["trials"] = trials_of(one);
  json["commands"] = one.commands;
  return json;
}

std::string text_of(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

std::string verification_json(const Verification& one, const Decision& decision) {
  Json json = whole(one, decision);
  json["trace"] = trace_of(one);
  return text_of(json);
}

std::string comparison_json(const Verification& one, const Decision& decision) {
  return text_of({{"schema", 1},
                  {"kind", "comparison"},
                  {"verification", whole(one, decision)},
                  {"trace", trace_of(one)}});
}

}  // namespace sidestream::verify
