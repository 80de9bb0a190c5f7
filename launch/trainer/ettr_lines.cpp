#include "launch/trainer/ettr_lines.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/json_fault.hpp"
#include "launch/reporting/jsonl_file.hpp"

namespace sidestream::launch {
namespace {

using nlohmann::json;

constexpr core::NumberBounds kTimeOfDay = {0, 1e11};
constexpr core::NumberBounds kCode = {-1000, 1e6};  // negative: a signal that ended the launcher

struct Figure {
  const char* key;
  core::NumberBounds bounds;
};
constexpr std::array<Figure, 8> kFigures = {{{"up_s", core::bounds::kSeconds},
                                             {"attempt", core::bounds::kCount},
                                             {"training_s", core::bounds::kSeconds},
                                             {"startup_s", core::bounds::kSeconds},
                                             {"restore_s", core::bounds::kSeconds},
                                             {"stall_s", core::bounds::kSeconds},
                                             {"evaluation_s", core::bounds::kSeconds},
                                             {"code", kCode}}};

// Throws DataError with the first that cannot be.
void check_figures(const json& line, const core::JsonPlace& place) {
  core::number_within(line, "at", kTimeOfDay, place);
  for (const Figure& figure : kFigures)
    core::maybe_number_within(line, figure.key, figure.bounds, place);
}

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
    try {
      check_figures(line.object, {path.string(), line.offset_bytes, "a line of the ledger"});
      found.lines.push_back(std::move(line.object));
    } catch (const core::DataError& error) {
      if (left_out++ == 0) first_fault = error.what();
    }
  }
  if (left_out > 0) found.faults.push_back(fault_text(first_fault, left_out));
  return found;
}

}  // namespace sidestream::launch
