#include "profiling/page/document.hpp"

#include <algorithm>
#include <iterator>

#include "profiling/page/timeline_data.hpp"
#include "profiling/report/memory_curve.hpp"
#include "profiling/report/table_json.hpp"
#include "profiling/report/tables.hpp"

namespace sidestream::page {
namespace {

using Json = nlohmann::ordered_json;

// report.json has them already, or they are longer than a page can hold.
constexpr const char* kLeftOut[] = {"overview",    "ranks",       "steps",
                                    "collectives", "distributed", "memory_curve"};

Json table_json(const std::string& name, const report::Table& table) {
  return {{"name", name},
          {"header", table.header},
          {"rows", report::json_rows(table)},
          {"total", table.rows.size()}};
}

Json tables_of(const report::Findings& findings) {
  Json list = Json::array();
  for (const report::TableSource& source : report::all_tables()) {
    if (std::find(std::begin(kLeftOut), std::end(kLeftOut), source.name) != std::end(kLeftOut))
      continue;
    const report::Table table = source.make(findings);
    list.push_back(table_json(source.name, table));
  }
  return list;
}

}  // namespace

Json run_document(const std::string& label, const analysis::Analysis& all,
                  const analysis::Details& details, Json report, const report::ShownSteps& shown) {
  return {{"label", label},
          {"report", std::move(report)},
          {"tables", tables_of({all, details})},
          {"memory_curves", report::memory_curves(all)},
          {"timeline", timeline_data(all, kMostEvents, shown)}};
}

Json short_run_document(const std::string& label, Json report) {
  return {{"label", label},
          {"report", std::move(report)},
          {"tables", Json::array()},
          {"memory_curves", Json::array()},
          {"timeline", nullptr}};
}

Json document_of(DocumentParts parts) {
  Json document = {{"schema", 1}, {"title", parts.title}};
  document["runs"] = Json::array();
  for (Json& run : parts.runs) document["runs"].push_back(std::move(run));
  document["verification"] = std::move(parts.verification);
  document["trace_change"] = std::move(parts.trace_change);
  document["sections"] = parts.sections.empty() ? Json() : Json(parts.sections);
  document["counter_commands"] = parts.counter_commands;
  return document;
}

}  // namespace sidestream::page
