#include "launch/trainer/ettr_ledger.hpp"

#include <fmt/format.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "launch/reporting/jsonl_file.hpp"

namespace sidestream::launch {
namespace {

using nlohmann::json;
using Ordered = nlohmann::ordered_json;

constexpr std::chrono::seconds kBetweenLines{5};

// What is known of one start.
struct Start {
  std::optional<double> launched_at;
  std::optional<double> started_at;
  std::optional<double> ended_at;  // as the supervisor saw it
  std::optional<int> finished_code;
  std::optional<int> ended_code;
  double first_training_s = 0;
  double last_training_s = 0;
  double rolled_back_s = 0;  // steps that an anomaly took back
  double last_sign_at = 0;
  double startup_s = 0;
  double restore_s = 0;
  double stall_s = 0;
  double evaluation_s = 0;

  double begin() const {
    return launched_at.value_or(started_at.value_or(last_sign_at) - startup_s - restore_s);
  }
  double end() const { return ended_at.value_or(last_sign_at); }
  bool failed() const {
    const int code = ended_code.value_or(finished_code.value_or(1));
    return code != 0 && code != 75;
  }
};

double number(const json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_number() ? found->get<double>() : 0;
}

void take_sums(const json& line, Start& start) {
  const double training_s = number(line, "training_s");
  start.rolled_back_s += std::max(0.0, start.last_training_s - training_s);
  start.last_training_s = training_s;
  start.stall_s = number(line, "stall_s");
  start.evaluation_s = number(line, "evaluation_s");
}

void take(const std::string& event, const json& line, Start& start) {
  const double at = number(line, "at");
  if (event == "launched") {
    start.launched_at = at;
  } else if (event == "ended") {
    start.ended_at = at;
    start.ended_code = static_cast<int>(number(line, "code"));
    return;  // a sign of the supervisor, not of the run
  } else if (event == "started") {
    start.started_at = at;
    start.startup_s = number(line, "startup_s");
    start.restore_s = number(line, "restore_s");
    start.first_training_s = start.last_training_s = number(line, "training_s");
  } else {
    take_sums(line, start);
    if (event == "finished") start.finished_code = static_cast<int>(number(line, "code"));
  }
  start.last_sign_at = std::max(start.last_sign_at, at);
}

// Supervisor and trainer append each when they can: the order of the lines says little.
std::vector<Start> starts_of(std::vector<json> ledger) {
  std::stable_sort(ledger.begin(), ledger.end(),
                   [](const json& a, const json& b) { return number(a, "at") < number(b, "at"); });
  std::vector<Start> starts;
  for (const json& line : ledger) {
    const auto found = line.find("event");
    if (found == line.end() || !found->is_string()) continue;
    const std::string event = *found;
    const bool known = event == "launched" || event == "started" || event == "progress" ||
                       event == "finished" || event == "ended";
    if (!known) continue;
    const bool opens =
        event == "launched" || (event == "started" && (starts.empty() || starts.back().started_at));
    if (opens || starts.empty()) starts.emplace_back();
    take(event, line, starts.back());
  }
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
    const double end = runs ? now_s : start.end();
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
  std::string text = fmt::format("effective training time {:.1f} % of {:.0f} s",
                                 100 * account.ettr(), account.wall_s);
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
    text += fmt::format("; {} starts, {} failures", account.starts, account.failures);
  return text;
}

double wall_clock_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

namespace {

// Since this process was made: "... starttime" is the 22nd field of stat, in clock ticks.
double age_of_this_process_s() {
  std::ifstream stat("/proc/self/stat"), uptime("/proc/uptime");
  std::string text;
  std::getline(stat, text);
  double up = 0;
  if (!(uptime >> up)) return 0;
  const auto end = text.rfind(')');
  if (end == std::string::npos) return 0;
  std::istringstream fields(text.substr(end + 1));
  std::string field;
  for (int i = 3; i <= 22; ++i) fields >> field;
  const double ticks = std::atof(field.c_str());
  return std::max(0.0, up - ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

std::string boot_of_this_machine() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id.substr(0, 8);
}

double seconds_since_boot() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Ordered stamped(const char* event) {
  return {{"event", event},
          {"at", wall_clock_s()},
          {"boot", boot_of_this_machine()},
          {"up_s", seconds_since_boot()}};
}

Ordered line_of(const char* event, const EttrLedger::Sums& sums) {
  Ordered line = stamped(event);
  line.update({{"step", sums.step},
               {"training_s", sums.training_s},
               {"stall_s", sums.stall_s},
               {"evaluation_s", sums.evaluation_s}});
  return line;
}

}  // namespace

EttrLedger::EttrLedger(std::filesystem::path path, int attempt, const Sums& start, double restore_s)
    : path_(std::move(path)), last_line_(std::chrono::steady_clock::now()) {
  Ordered line = stamped("started");
  line.update({{"attempt", attempt},
               {"step", start.step},
               {"training_s", start.training_s},
               {"startup_s", std::max(0.0, age_of_this_process_s() - restore_s)},
               {"restore_s", restore_s}});
  append_json_line(path_, line);
}

void EttrLedger::progress(const Sums& sums, When when) {
  const auto now = std::chrono::steady_clock::now();
  if (when == When::kEveryFewSeconds && now - last_line_ < kBetweenLines) return;
  last_line_ = now;
  append_json_line(path_, line_of("progress", sums));
}

void EttrLedger::finished(const Sums& sums, int code) {
  Ordered line = line_of("finished", sums);
  line["code"] = code;
  append_json_line(path_, line);
}

EttrAccount EttrLedger::account() const {
  std::vector<json> ledger = read_json_lines(path_);
  ledger.push_back(stamped("now"));
  settle_clocks(ledger);
  return account_of(ledger, number(ledger.back(), "at"));
}

}  // namespace sidestream::launch
