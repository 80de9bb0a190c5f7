#include "launch/trainer/ettr_account.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "core/base/exit_code.hpp"

namespace sidestream::launch {
namespace {

using nlohmann::json;
using Ordered = nlohmann::ordered_json;

// What is known of one start.
struct Start {
  std::optional<double> launched_at;
  std::optional<double> started_at;
  std::optional<double> ended_at;  // as the supervisor saw it
  std::optional<int> finished_code;
  std::optional<int> ended_code;
  std::string boot_of_supervisor;
  std::string boot_of_run;
  double shift_s = 0;  // that the run's times have got
  double first_training_s = 0;
  double last_training_s = 0;
  double rolled_back_s = 0;  // steps that an anomaly took back
  double last_sign_at = 0;
  double startup_s = 0;
  double restore_s = 0;
  double stall_s = 0;
  double evaluation_s = 0;

  double begin() const {
    if (launched_at) return *launched_at;
    if (started_at) return *started_at - startup_s - restore_s;
    return last_sign_at > 0 ? last_sign_at : ended_at.value_or(0);
  }
  double end() const { return ended_at.value_or(last_sign_at); }
  // Refused, or done without a step: it has not taken the run over, and its time is not the run's.
  bool was_turned_away() const {
    return ended_code && !started_at &&
           (*ended_code == 0 || *ended_code == static_cast<int>(core::ExitCode::kConfig));
  }
  bool failed() const {
    const int code = ended_code.value_or(finished_code.value_or(1));
    return code != 0 && code != 75;
  }
};

double number(const json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : 0;
}

std::string text_at(const json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : "";
}

int code_of(const json& line) { return static_cast<int>(number(line, "code")); }

void take_sums(const json& line, Start& start) {
  const double training_s = number(line, "training_s");
  start.rolled_back_s += std::max(0.0, start.last_training_s - training_s);
  start.last_training_s = training_s;
  start.stall_s = number(line, "stall_s");
  start.evaluation_s = number(line, "evaluation_s");
}

void take_of_supervisor(const std::string& event, const json& line, Start& start) {
  start.boot_of_supervisor = text_at(line, "boot");
  if (event == "launched") {
    start.launched_at = number(line, "at");
    return;
  }
  start.ended_at = number(line, "at");
  start.ended_code = code_of(line);
}

void take_of_run(const std::string& event, const json& line, Start& start) {
  const double at = number(line, "at");
  start.boot_of_run = text_at(line, "boot");
  start.last_sign_at = std::max(start.last_sign_at, at);
  if (event != "started") {
    take_sums(line, start);
    if (event == "finished") start.finished_code = code_of(line);
    return;
  }
  start.started_at = at;
  start.startup_s = number(line, "startup_s");
  start.restore_s = number(line, "restore_s");
  start.first_training_s = start.last_training_s = number(line, "training_s");
}

bool is_of_supervisor(const std::string& event) { return event == "launched" || event == "ended"; }

bool is_known(const std::string& event) {
  return is_of_supervisor(event) || event == "started" || event == "progress" ||
         event == "finished";
}

// Which start a line belongs to; empty where nobody has numbered it.
std::string name_of_start(const json& line) {
  const std::string supervisor = text_at(line, "supervisor");
  return supervisor.empty() ? "" : fmt::format("{} {}", supervisor, number(line, "attempt"));
}

// Only the times of another host can be wrong: those of one host are of one clock.
void settle_host(Start& start) {
  constexpr double kUnbounded = std::numeric_limits<double>::infinity();
  const bool other_host = !start.boot_of_run.empty() && !start.boot_of_supervisor.empty() &&
                          start.boot_of_run != start.boot_of_supervisor;
  if (other_host && start.started_at) {
    const double begin_s = *start.started_at - start.startup_s - start.restore_s;
    const double least_s = start.launched_at ? *start.launched_at - begin_s : -kUnbounded;
    const double most_s = start.ended_at ? *start.ended_at - start.last_sign_at : kUnbounded;
    start.shift_s = least_s > most_s ? least_s : std::clamp(0.0, least_s, most_s);
    *start.started_at += start.shift_s;
    start.last_sign_at += start.shift_s;
  }
  start.last_sign_at = std::max(start.last_sign_at, start.launched_at.value_or(0));
}

// Supervisor and trainer append each when they can: the order of the lines says little, and their
// clocks need not agree either. Those that a supervisor has numbered are told apart by that.
std::vector<Start> starts_of(std::vector<json> ledger) {
  std::stable_sort(ledger.begin(), ledger.end(),
                   [](const json& a, const json& b) { return number(a, "at") < number(b, "at"); });
  std::map<std::string, Start> numbered;
  std::vector<Start> starts;
  for (const json& line : ledger) {
    const std::string event = text_at(line, "event");
    if (!is_known(event)) continue;
    const auto take = is_of_supervisor(event) ? take_of_supervisor : take_of_run;
    if (const std::string name = name_of_start(line); !name.empty()) {
      take(event, line, numbered[name]);
      continue;
    }
    const bool opens =
        event == "launched" || (event == "started" && (starts.empty() || starts.back().started_at));
    if (opens || starts.empty()) starts.emplace_back();
    take(event, line, starts.back());
  }
  for (const auto& [name, start] : numbered) starts.push_back(start);
  std::erase_if(starts, [](const Start& start) { return start.was_turned_away(); });
  std::for_each(starts.begin(), starts.end(), settle_host);
  std::stable_sort(starts.begin(), starts.end(),
                   [](const Start& a, const Start& b) { return a.begin() < b.begin(); });
  return starts;
}

// The start that went on from where this one was left; those in between died in their set-up.
const Start* heir_of(const std::vector<Start>& starts, std::size_t index) {
  if (!starts[index].started_at) return nullptr;
  for (std::size_t i = index + 1; i < starts.size(); ++i) {
    if (starts[i].started_at) return &starts[i];
  }
  return nullptr;
}

// A checkpoint may have steps that came after the last line: the run lived at least as long.
void count_proven_steps(std::vector<Start>& starts) {
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const Start* heir = heir_of(starts, i);
    if (heir == nullptr) continue;
    const double more_s = heir->first_training_s - starts[i].last_training_s;
    if (more_s > 0)
      starts[i].last_sign_at = std::min(starts[i].last_sign_at + more_s,
                                        std::max(starts[i].end(), starts[i].last_sign_at));
  }
}

// Steps that were lost with a start, and those whose effect is in the weights of the newest one.
void add_steps(const std::vector<Start>& starts, EttrAccount& account) {
  std::optional<double> before_s;  // of a ledger that was lost
  for (std::size_t i = 0; i < starts.size(); ++i) {
    if (!starts[i].started_at) continue;
    before_s = before_s.value_or(starts[i].first_training_s);
    const Start* heir = heir_of(starts, i);
    if (heir != nullptr)
      account.replayed_s += std::max(0.0, starts[i].last_training_s - heir->first_training_s);
    else
      account.productive_s = starts[i].last_training_s - *before_s;
  }
}

// Of one start: what was spent between its begin and its end, but for what its steps brought.
void add_start(const Start& start, double end, EttrAccount& account) {
  account.startup_s +=
      std::max(0.0, start.started_at.value_or(end) - start.begin() - start.restore_s);
  account.restore_s += start.restore_s;
  account.checkpoint_stall_s += start.stall_s;
  account.evaluation_s += start.evaluation_s;
  account.replayed_s += start.rolled_back_s;
  if (start.started_at) account.detection_s += std::max(0.0, end - start.last_sign_at);
}

}  // namespace

void settle_clocks(std::vector<json>& ledger) {
  std::map<std::string, double> booted_at;
  for (json& line : ledger) {
    const auto boot = line.find("boot");
    if (boot == line.end() || !boot->is_string()) continue;
    const double up_s = number(line, "up_s");
    const double at = booted_at.try_emplace(*boot, number(line, "at") - up_s).first->second + up_s;
    line["at"] = at;
  }
}

std::optional<double> EttrAccount::mtbf_s() const noexcept {
  return failures == 0 ? std::nullopt : std::optional(wall_s / static_cast<double>(failures));
}

EttrAccount account_of(const std::vector<json>& ledger, double now_s) {
  std::vector<Start> starts = starts_of(ledger);
  count_proven_steps(starts);
  EttrAccount account;
  if (starts.empty()) return account;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const Start& start = starts[i];
    const bool last = i + 1 == starts.size();
    const bool runs = last && !start.ended_at && !start.finished_code;
    const double end = runs ? now_s + start.shift_s : start.end();
    add_start(start, runs ? std::max(start.last_sign_at, start.begin()) : end, account);
    ++account.starts;
    if (!runs && start.failed()) ++account.failures;
    if (last)
      account.wall_s = end - starts.front().begin();
    else
      account.idle_s += std::max(0.0, starts[i + 1].begin() - end);
  }
  add_steps(starts, account);
  account.other_s = account.wall_s - account.productive_s - account.replayed_s - account.startup_s -
                    account.restore_s - account.checkpoint_stall_s - account.evaluation_s -
                    account.detection_s - account.idle_s;
  return account;
}

FoundAccount found_account(const std::filesystem::path& path, EttrLines ledger) {
  // Where a start is killed, seconds that two writers have noted are counted twice.
  constexpr double kRounding_s = 1, kCountedTwice_s = 10;
  settle_clocks(ledger.lines);
  double last_at = 0;
  for (const json& line : ledger.lines) last_at = std::max(last_at, number(line, "at"));
  const EttrAccount account = account_of(ledger.lines, last_at);
  FoundAccount found{.faults = std::move(ledger.faults)};
  if (account.starts == 0) return found;
  const double counted_s = account.wall_s - account.other_s;
  const bool training_fits =
      account.productive_s >= 0 && account.productive_s <= account.wall_s + kRounding_s;
  if (!training_fits || counted_s > 2 * account.wall_s + kCountedTwice_s) {
    found.faults.push_back(fmt::format(
        "{}: {:.3g} s of training and {:.3g} s of all kinds within {:.3g} s cannot be: lines are "
        "damaged or lost, or a clock was set; where the time of the run went is left out",
        path.string(), account.productive_s, counted_s, account.wall_s));
    return found;
  }
  found.account = account;
  return found;
}

FoundAccount read_account(const std::filesystem::path& ledger) {
  return found_account(ledger, read_ettr_lines(ledger));
}

Ordered to_json(const EttrAccount& account) {
  return {{"wall_s", account.wall_s},
          {"productive_s", account.productive_s},
          {"replayed_s", account.replayed_s},
          {"startup_s", account.startup_s},
          {"restore_s", account.restore_s},
          {"checkpoint_stall_s", account.checkpoint_stall_s},
          {"evaluation_s", account.evaluation_s},
          {"detection_s", account.detection_s},
          {"idle_s", account.idle_s},
          {"other_s", account.other_s},
          {"starts", account.starts},
          {"failures", account.failures}};
}

std::string describe(const EttrAccount& account) {
  constexpr double kShort = 100;  // its parts have a decimal, too
  std::string text =
      fmt::format("effective training time {:.1f} % of {:.{}f} s", 100 * account.ettr(),
                  account.wall_s, account.wall_s < kShort ? 1 : 0);
  const auto add = [&](const char* name, double seconds) {
    if (seconds >= 0.05) text += fmt::format(", {} {:.1f} s", name, seconds);
  };
  add("start-up", account.startup_s);
  add("restoring", account.restore_s);
  add("saving", account.checkpoint_stall_s);
  add("evaluating", account.evaluation_s);
  add("trained again", account.replayed_s);
  add("noticing failures", account.detection_s);
  add("idle", account.idle_s);
  add("other", account.other_s);
  if (account.starts > 1)
    text += fmt::format("; {} starts, {} failure{}", account.starts, account.failures,
                        account.failures == 1 ? "" : "s");
  return text;
}

}  // namespace sidestream::launch
