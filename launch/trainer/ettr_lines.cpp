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

}  // namespace

EttrLines read_ettr_lines(const std::filesystem::path& path) {
  EttrLines found;
  std::string first_fault;
  int left_out = 0;
  for (JsonLine& line : read_json_lines(path)) {
    const core::JsonPlace place{path.string(), line.offset_bytes, "a line of the ledger"};
    try {
      if (line.object.is_null())
        throw core::DataError(core::FileFault{.file = place.file,
                                              .offset_bytes = place.offset_bytes,
                                              .expected = place.expected,
                                              .found = "no JSON object"});
      core::number_within(line.object, "at", kTimeOfDay, place);
      core::check_numbers(line.object, kLineFigures, place);
      found.lines.push_back(std::move(line.object));
    } catch (const core::DataError& error) {
      if (left_out++ == 0) first_fault = error.what();
    }
  }
  if (left_out > 0) found.faults.push_back(fault_text(first_fault, left_out));
  return found;
}

}  // namespace sidestream::launch
