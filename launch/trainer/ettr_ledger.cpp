#include "launch/trainer/ettr_ledger.hpp"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/faults/fault_injector.hpp"
#include "launch/reporting/jsonl_file.hpp"

namespace sidestream::launch {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr std::chrono::seconds kBetweenLines{5};

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

double wall_clock_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
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

}  // namespace

EttrLedger::StartName EttrLedger::StartName::of_this_process() {
  const char* const supervisor = std::getenv("SIDESTREAM_SUPERVISED");
  return {.attempt = faults::Victim::attempt_of_this_process(),
          .supervisor = supervisor == nullptr ? "" : supervisor};
}

EttrLedger::EttrLedger(std::filesystem::path path, StartName name, const Sums& start,
                       double restore_s)
    : file_(std::move(path), AppendedFile::Content::kLines),
      name_(std::move(name)),
      last_line_(std::chrono::steady_clock::now()) {
  Ordered line = line_of("started");
  line.update({{"step", start.step},
               {"training_s", start.training_s},
               {"startup_s", std::max(0.0, age_of_this_process_s() - restore_s)},
               {"restore_s", restore_s}});
  append_json_line(file_, line);
  file_.begin_anew_with(json_line(line));
}

void EttrLedger::progress(const Sums& sums, When when) {
  const auto now = std::chrono::steady_clock::now();
  if (when == When::kEveryFewSeconds && now - last_line_ < kBetweenLines) return;
  last_line_ = now;
  append_json_line(file_, line_of("progress", sums));
}

void EttrLedger::finished(const Sums& sums, int code) {
  Ordered line = line_of("finished", sums);
  line["code"] = code;
  append_json_line(file_, line);
}

FoundAccount EttrLedger::account() const {
  EttrLines ledger = read_ettr_lines(file_.path());
  ledger.lines.push_back(line_of("now"));
  return found_account(file_.path(), std::move(ledger));
}

Ordered EttrLedger::line_of(const char* event) const {
  Ordered line = {{"event", event},
                  {"at", wall_clock_s()},
                  {"boot", boot_of_this_machine()},
                  {"up_s", seconds_since_boot()},
                  {"attempt", name_.attempt}};
  if (!name_.supervisor.empty()) line["supervisor"] = name_.supervisor;
  return line;
}

Ordered EttrLedger::line_of(const char* event, const Sums& sums) const {
  Ordered line = line_of(event);
  line.update({{"step", sums.step},
               {"training_s", sums.training_s},
               {"stall_s", sums.stall_s},
               {"evaluation_s", sums.evaluation_s}});
  return line;
}

}  // namespace sidestream::launch
