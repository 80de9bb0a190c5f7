#include "launch/trainer/ettr_lines.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/base/error.hpp"
#include "core/base/json_fault.hpp"
#include "core/base/number_fields.hpp"
#include "launch/reporting/jsonl_file.hpp"

namespace sidestream::launch {
namespace {

constexpr core::NumberBounds kTimeOfDay = {0, 1e11};
constexpr core::NumberBounds kCode = {-1000, 1e6};  // negative: a signal that ended the launcher

constexpr core::NumberField kLineFigures[] = {
    {"up_s", core::bounds::kSeconds},         {"attempt", core::bounds::kCount},
    {"training_s", core::bounds::kSeconds},   {"startup_s", core::bounds::kSeconds},
    {"restore_s", core::bounds::kSeconds},    {"stall_s", core::bounds::kSeconds},
    {"evaluation_s", core::bounds::kSeconds}, {"code", kCode}};

std::string fault_text(const std::string& first, int lines) {
  return lines == 1 ? first + ": this line is left out"
                    : fmt::format("{}: this line is left out, and {} more", first, lines - 1);
}

bool is_same_at(const nlohmann::json& one, const nlohmann::json& other, const char* key) {
  const auto found = one.find(key), beside = other.find(key);
  if (found == one.end() || beside == other.end())
    return found == one.end() && beside == other.end();
  return *found == *beside;
}

bool has_grown(const nlohmann::json& one, const nlohmann::json& next, const char* key) {
  const auto before = one.find(key), after = next.find(key);
  return before != one.end() && after != next.end() && *before <= *after;
}

// Progress of one start, in order.
bool goes_on(const nlohmann::json& one, const nlohmann::json& next) {
  for (const nlohmann::json* line : {&one, &next}) {
    const auto event = line->find("event");
    if (event == line->end() || *event != "progress") return false;
  }
  return is_same_at(one, next, "boot") && is_same_at(one, next, "supervisor") &&
         is_same_at(one, next, "attempt") && has_grown(one, next, "at") &&
         has_grown(one, next, "training_s");
}

// Sums of a start are those of its newest line: those in between say nothing, unless steps were
// taken back. The first one stays, for by it the clock of its boot is told.
void keep_line(nlohmann::json&& line, std::vector<nlohmann::json>& lines) {
  const std::size_t count = lines.size();
  if (count >= 2 && goes_on(lines[count - 2], lines.back()) && goes_on(lines.back(), line))
    lines.back() = std::move(line);
  else
    lines.push_back(std::move(line));
}

}  // namespace

EttrLines read_ettr_lines(const std::filesystem::path& path) {
  EttrLines found;
  std::string first_fault;
  int left_out = 0;
  visit_json_lines(path, [&](JsonLine line) {
    const core::JsonPlace place{path.string(), line.offset_bytes, "a line of the ledger"};
    try {
      if (line.object.is_null())
        throw core::DataError(core::FileFault{.file = place.file,
                                              .offset_bytes = place.offset_bytes,
                                              .expected = place.expected,
                                              .found = "no JSON object"});
      core::number_within(line.object, "at", kTimeOfDay, place);
      core::check_numbers(line.object, kLineFigures, place);
      keep_line(std::move(line.object), found.lines);
    } catch (const core::DataError& error) {
      if (left_out++ == 0) first_fault = error.what();
    }
  });
  if (left_out > 0) found.faults.push_back(fault_text(first_fault, left_out));
  return found;
}

}  // namespace sidestream::launch
