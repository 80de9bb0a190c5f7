#include "profiling/analysis/collective_list.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "profiling/analysis/event_class.hpp"

namespace sidestream::analysis {
namespace {

using trace::Kind;
using trace::RankTimeline;

bool is_collective(const RankTimeline& timeline, std::size_t row, const NameClasses& classes) {
  const NameClass what = classes[timeline.name_id(row)];
  return (timeline.kind(row) == Kind::kKernel && what == NameClass::kCollectiveKernel) ||
         (timeline.kind(row) == Kind::kHostRange && what == NameClass::kCollectiveRange);
}

// Where kernels show the collectives, the ranges around their launch are not a second set of them.
std::vector<std::size_t> collective_rows(const RankTimeline& timeline) {
  const NameClasses classes(timeline.names);
  std::vector<std::size_t> kernels, ranges;
  for (std::size_t row = 0; row < timeline.size(); ++row) {
    if (!is_collective(timeline, row, classes)) continue;
    (timeline.kind(row) == Kind::kKernel ? kernels : ranges).push_back(row);
  }
  std::vector<std::size_t> rows = kernels.empty() ? std::move(ranges) : std::move(kernels);
  std::stable_sort(rows.begin(), rows.end(), [&](std::size_t a, std::size_t b) {
    return timeline.start_ns(a) < timeline.start_ns(b);
  });
  return rows;
}

// c10d writes the names of its scalar types, nsys those of NCCL.
std::int64_t bytes_of_type(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, int>, 14> sizes = {{{"Float", 4},
                                                                       {"BFloat16", 2},
                                                                       {"Half", 2},
                                                                       {"Double", 8},
                                                                       {"Long", 8},
                                                                       {"Int", 4},
                                                                       {"Short", 2},
                                                                       {"Byte", 1},
                                                                       {"Char", 1},
                                                                       {"Bool", 1},
                                                                       {"Float8_e4m3fn", 1},
                                                                       {"Float8_e5m2", 1},
                                                                       {"ComplexFloat", 8},
                                                                       {"ComplexDouble", 16}}};
  for (const auto& [name, bytes] : sizes) {
    if (name == type) return bytes;
  }
  return -1;
}

std::string name_in_kernel(std::string_view kernel) {
  const std::string_view operation = operation_in_name(kernel);
  return std::string(operation.empty() ? "collective" : operation);
}

}  // namespace

std::map<std::string, std::vector<std::size_t>> collectives_by_group(const RankTimeline& timeline) {
  const std::vector<std::size_t> rows = collective_rows(timeline);
  std::set<std::int64_t> streams;
  const auto has_group = [&](std::size_t row) {
    const auto* detail = timeline.collective(row);
    return detail != nullptr && detail->group != trace::kNoName;
  };
  for (const std::size_t row : rows) {
    if (timeline.device(row).has_value() && !has_group(row))
      streams.insert(timeline.device(row)->stream);
  }
  std::map<std::string, std::vector<std::size_t>> groups;
  for (const std::size_t row : rows) {
    std::string group = "sidestream";
    if (has_group(row)) {
      group = "pg:" + std::string(timeline.names[timeline.collective(row)->group]);
    } else if (const auto device = timeline.device(row)) {
      group =
          "stream#" + std::to_string(std::distance(streams.begin(), streams.find(device->stream)));
    }
    groups[group].push_back(row);
  }
  return groups;
}

CollectiveFacts collective_facts(const RankTimeline& timeline, std::size_t row) {
  CollectiveFacts facts;
  const bool kernel = timeline.kind(row) == Kind::kKernel;
  facts.name = kernel ? name_in_kernel(timeline.name(row)) : std::string(timeline.name(row));
  const trace::CollectiveDetail* detail = timeline.collective(row);
  if (detail == nullptr) return facts;
  if (detail->name != trace::kNoName) facts.name = timeline.names[detail->name];
  facts.bytes = detail->bytes;
  const std::int64_t element = bytes_of_type(timeline.names[detail->dtype]);
  if (facts.bytes < 0 && element > 0 && detail->elements_in >= 0)
    facts.bytes = detail->elements_in * element;
  facts.bucket = detail->bucket;
  facts.sequence = detail->sequence;
  facts.group_size = detail->group_size;
  return facts;
}

std::string_view operation_in_name(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> words = {
      {{"allreduce", "allreduce"},
       {"reducescatter", "reduce_scatter"},
       {"allgather", "all_gather"},
       {"alltoall", "all_to_all"},
       {"broadcast", "broadcast"},
       {"barrier", "barrier"},
       {"send", "send_recv"},
       {"recv", "send_recv"},
       {"scatter", "scatter"},
       {"gather", "gather"},
       {"reduce", "reduce"}}};
  std::string letters(name);
  std::erase(letters, '_');
  for (char& letter : letters)
    letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
  for (const auto& [word, operation] : words) {
    if (letters.find(word) != std::string::npos) return operation;
  }
  return {};
}

}  // namespace sidestream::analysis
