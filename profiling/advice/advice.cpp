#include "profiling/advice/advice.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "profiling/advice/foreign_needs.hpp"
#include "profiling/advice/pytorch_words.hpp"
#include "profiling/report/wrap.hpp"

namespace sidestream::advice {
namespace {

using Json = nlohmann::ordered_json;

// Unknown bounds come last.
double bound_of(const Finding& one) { return one.what.bound.value_or(-1); }

bool comes_before(const Finding& one, const Finding& other) {
  if (one.rule->before_all != other.rule->before_all) return one.rule->before_all;
  return bound_of(one) > bound_of(other);
}

const char* severity_of(const Finding& one) {
  constexpr double kHigh = 0.1, kMedium = 0.03;
  if (!one.what.bound) return "unknown";
  if (*one.what.bound >= kHigh) return "high";
  return *one.what.bound >= kMedium ? "medium" : "low";
}

const PyTorchWords* words_of(const Finding& one) {
  return one.foreign ? pytorch_words(one.rule->id) : nullptr;
}

// A count is "12 a step", a share "12 % of the step".
std::string whole_of(const Evidence& one) {
  if (one.denominator.empty()) return "";
  if (one.unit == "%") return " of the " + one.denominator;
  const bool sentence = one.denominator.find(' ') != std::string::npos;
  return (sentence ? ", " : " a ") + one.denominator;
}

std::string amount_of(const Evidence& one) {
  if (one.unit == "B") return report::bytes_text(one.value);
  if (one.unit == "FLOP") return report::rate_text(one.value, one.unit);
  return report::number_text(one.value) + (one.unit.empty() ? "" : " ") + one.unit;
}

std::string text_of(const Evidence& one) { return one.name + " " + amount_of(one) + whole_of(one); }

std::string evidence_text(const Finding& one) {
  std::string text;
  for (const Evidence& each : one.what.evidence) text += (text.empty() ? "" : "; ") + text_of(each);
  return text;
}

Json json_of(const Finding& one, std::size_t number) {
  Json evidence = Json::array();
  for (const Evidence& each : one.what.evidence)
    evidence.push_back(
        {{"name", each.name},
         {"value", each.value},
         {"unit", each.unit},
         {"denominator", each.denominator.empty() ? Json() : Json(each.denominator)}});
  return {{"id", fmt::format("{}-{}", one.rule->id, number)},
          {"rule", one.rule->id},
          {"title", one.rule->title},
          {"severity", severity_of(one)},
          {"rank", one.what.rank < 0 ? Json() : Json(one.what.rank)},
          {"stream", one.place && one.place->stream ? Json(*one.place->stream) : Json()},
          {"start_ns", one.place ? Json(one.place->start_ns) : Json()},
          {"end_ns", one.place ? Json(one.place->end_ns) : Json()},
          {"place_rank", one.place ? Json(one.place->rank) : Json()},
          {"count", one.count},
          {"ranks", one.ranks},
          {"figures_of_rank", one.shown ? Json(*one.shown) : Json()},
          {"evidence", evidence},
          {"evidence_text", evidence_text(one)},
          {"threshold", one.rule->threshold},
          {"looks_at", one.rule->looks_at},
          {"source", one.rule->source},
          {"comes_first", one.rule->before_all},
          {"gain_ceiling_pct", one.what.bound ? Json(*one.what.bound * 100) : Json()},
          {"fix", one.fix()},
          {"false_if", one.false_if()},
          {"check", one.check()}};
}

}  // namespace

std::string Finding::fix() const {
  if (!what.fix.empty()) return what.fix;
  const PyTorchWords* words = words_of(*this);
  return words == nullptr ? rule->fix : words->fix;
}

std::string Finding::false_if() const {
  const PyTorchWords* words = words_of(*this);
  return words == nullptr || words->false_if == nullptr ? rule->false_if : words->false_if;
}

std::string Finding::check() const {
  const PyTorchWords* words = words_of(*this);
  return words == nullptr || words->check == nullptr ? rule->check : words->check;
}

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> rules = [] {
    std::vector<Rule> all;
    for (const auto& some :
         {input_rules(), communication_rules(), host_rules(), device_rules(), machine_rules()})
      all.insert(all.end(), some.begin(), some.end());
    return all;
  }();
  return rules;
}

bool is_waiting_for_input(const Rule& rule) { return rule.place == PlaceKind::kInput; }

const Finding* first_of_run(const std::vector<Finding>& findings) {
  const auto first = std::find_if(findings.begin(), findings.end(),
                                  [](const Finding& one) { return !one.rule->before_all; });
  return first == findings.end() ? nullptr : &*first;
}

std::vector<Finding> merged(std::vector<Finding> findings) {
  std::stable_sort(findings.begin(), findings.end(), comes_before);
  std::vector<Finding> result;
  for (Finding& one : findings) {
    const auto same = std::find_if(result.begin(), result.end(), [&](const Finding& kept) {
      return kept.rule == one.rule && kept.fix() == one.fix();
    });
    if (same == result.end()) {
      result.push_back(std::move(one));
    } else {
      if (bound_of(*same) != bound_of(one) && !same->ranks.empty())
        same->shown = same->ranks.front();
      same->count += one.count;
      same->ranks.insert(same->ranks.end(), one.ranks.begin(), one.ranks.end());
      if (same->what.rank != one.what.rank) same->what.rank = -1;
    }
  }
  return result;
}

namespace {

// The trace is of steps that the profiler made longer, the gain is of those without it: the same
// time is a larger share of them. Where that is much, the evidence says so: its shares are of the
// steps that were recorded.
void refer_to_steps_without_profiler(const Facts& facts, Advice& advice) {
  constexpr double kWorthSaying = 0.02;
  const double cost = facts.profiler_cost.value_or(0);
  for (Finding& one : advice.findings) {
    if (!one.what.bound || !one.what.bounds_recorded_time) continue;
    one.what.bound = std::min(1.0, *one.what.bound * (1 + cost));
    if (cost > kWorthSaying)
      one.what.evidence.push_back(
          {"the bound is of a step without the profiler, which makes one longer by", cost * 100,
           "%"});
  }
}

// Of each rank that shows what all of them show together; of all together when none does by itself,
// when the finding names its rank, or when its figures are no rank's own.
std::vector<Finding> on_ranks(const Facts& facts, const Rule& rule, const Found& of_all) {
  std::vector<Finding> findings;
  if (rule.figures == Figures::kOfStep && of_all.rank < 0 && facts.step_of_rank.size() > 1) {
    for (const auto& [rank, step] : facts.step_of_rank) {
      Outcome outcome = rule.look(facts.of_rank(rank), rule);
      if (!outcome.found) continue;
      outcome.found->rank = rank;
      findings.push_back({.rule = &rule, .what = std::move(*outcome.found), .ranks = {rank}});
    }
  }
  if (findings.empty()) findings.push_back({.rule = &rule, .what = of_all});
  return findings;
}

}  // namespace

Advice advise(const Facts& facts) {
  Advice advice{.foreign = facts.foreign, .recorder = facts.recorder};
  for (const Rule& rule : all_rules()) {
    Outcome outcome = rule.look(facts, rule);
    if (!outcome.needs.empty())
      advice.not_measured.push_back(
          {rule.id, facts.foreign ? foreign_needs(outcome.needs, facts.recorder) : outcome.needs});
    if (outcome.needs.empty() && !outcome.found) advice.nothing_found.push_back(rule.id);
    if (!outcome.found) continue;
    for (Finding& one : on_ranks(facts, rule, *outcome.found)) {
      if (const Place* place = facts.places.find(rule.place, one.what.rank)) one.place = *place;
      one.foreign = facts.foreign;
      advice.findings.push_back(std::move(one));
    }
  }
  advice.first_step_ns = facts.places.first_step_ns;
  refer_to_steps_without_profiler(facts, advice);
  advice.findings = merged(std::move(advice.findings));
  return advice;
}

void add_to_report(const Advice& advice, Json& report) {
  report["advice"] = Json::array();
  for (std::size_t i = 0; i < advice.findings.size(); ++i)
    report["advice"].push_back(json_of(advice.findings[i], i + 1));
  report["nothing_found"] = advice.nothing_found;
  if (advice.foreign) {  // what the report itself could not measure
    for (Json& one : report["not_measured"])
      one["needs"] = foreign_needs(one["needs"].get<std::string>(), advice.recorder);
  }
  for (const auto& [rule, needs] : advice.not_measured)
    report["not_measured"].push_back({{"rule", rule}, {"needs", needs}});
}

namespace {

std::string whose_text(const Finding& one) {
  if (one.what.rank >= 0) return fmt::format(" (rank {})", one.what.rank);
  if (one.count < 2) return "";
  return one.shown
             ? fmt::format(" ({} ranks; figures of rank {}, the worst)", one.count, *one.shown)
             : fmt::format(" ({} ranks)", one.count);
}

// Why one with a smaller bound stands before the others.
std::string order_text(const Finding& one) {
  return one.rule->before_all ? "; first, for what else is found may follow from it" : "";
}

// Where its largest piece lies, as on a page; empty: nothing in the timeline shows it.
std::string place_text(const Finding& one, std::int64_t first_step_ns) {
  if (!one.place) return "";
  const auto at = [&](std::int64_t time_ns) {
    return report::duration_text(static_cast<double>(time_ns - first_step_ns));
  };
  return fmt::format("where: rank {}{}, {} to {} after the first step began", one.place->rank,
                     one.place->stream ? fmt::format(", stream {}", *one.place->stream) : "",
                     at(one.place->start_ns), at(one.place->end_ns));
}

// What the report and the rules lack, as the list in report.json.
std::vector<NotMeasured> all_not_measured(const Advice& advice,
                                          const std::vector<report::MissingFigure>& figures) {
  std::vector<NotMeasured> all;
  for (const auto& [name, needs] : figures)
    all.push_back({name, advice.foreign ? foreign_needs(needs, advice.recorder) : needs});
  all.insert(all.end(), advice.not_measured.begin(), advice.not_measured.end());
  return all;
}

// A line a need: what to record next time, and which figures and rules it is for.
std::string not_measured_text(const std::vector<NotMeasured>& list, std::size_t width) {
  std::vector<std::pair<std::string, std::string>> rules_of_needs;
  for (const auto& [rule, needs] : list) {
    const auto found = std::find_if(rules_of_needs.begin(), rules_of_needs.end(),
                                    [&](const auto& one) { return one.first == needs; });
    if (found == rules_of_needs.end())
      rules_of_needs.emplace_back(needs, rule);
    else
      found->second += ", " + rule;
  }
  std::string text;
  for (const auto& [needs, rules] : rules_of_needs)
    text += report::wrapped(fmt::format("  needs {}: {}", needs, rules), width, 4);
  if (text.empty()) return "";
  return report::wrapped("Could not look, for it was not measured", width, 2) + text;
}

// "Looked and found nothing" is not "could not look": both are said.
std::string silent_rules_text(const Advice& advice,
                              const std::vector<report::MissingFigure>& figures,
                              std::size_t width) {
  std::string looked, text;
  for (const std::string& rule : advice.nothing_found)
    looked += (looked.empty() ? "" : ", ") + rule;
  if (!looked.empty()) text += report::wrapped("Looked and found nothing: " + looked, width, 2);
  return text + not_measured_text(all_not_measured(advice, figures), width);
}

}  // namespace

std::string advice_text(const Advice& advice, const report::TextStyle& style,
                        const std::vector<report::MissingFigure>& figures) {
  if (advice.findings.empty())
    return report::wrapped("Advice: nothing found by the rules that could look",
                           style.width_columns, 2) +
           silent_rules_text(advice, figures, style.width_columns);
  std::string text = "Advice (bounds, no promises)\n";
  for (const Finding& one : advice.findings) {
    const std::string bound = one.what.bound
                                  ? fmt::format("at most {:.1f} %", *one.what.bound * 100)
                                  : std::string("bound not known");
    const std::string title = report::wrapped(
        fmt::format("{}{}: {}{}", one.rule->title, whose_text(one), bound, order_text(one)),
        style.width_columns, 2);
    text += style.color ? "\033[1m" + title + "\033[0m" : title;
    for (const std::string& line :
         {"why: " + evidence_text(one), place_text(one, advice.first_step_ns), "fix: " + one.fix(),
          "false if: " + one.false_if(), "check: " + one.check()}) {
      if (!line.empty()) text += report::wrapped("  " + line, style.width_columns, 7);
    }
  }
  return text + silent_rules_text(advice, figures, style.width_columns);
}

}  // namespace sidestream::advice
