#include "profiling/advice/layout_copies.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "profiling/advice/operation_kind.hpp"

namespace sidestream::advice {
namespace {

using trace::NameId;

enum class Role : unsigned char { kOther, kCopy, kLayout, kPassesOn, kProduct };

Role role_of(std::string_view name) {
  constexpr std::array<std::string_view, 3> kLayout = {"aten::contiguous", "aten::clone",
                                                       "aten::reshape"};
  constexpr std::array<std::string_view, 20> kPassOn = {
      "aten::view",       "aten::_unsafe_view",  "aten::transpose",    "aten::t",
      "aten::permute",    "aten::expand",        "aten::as_strided",   "aten::empty",
      "aten::empty_like", "aten::empty_strided", "aten::matmul",       "aten::linear",
      "aten::unsqueeze",  "aten::squeeze",       "aten::detach",       "aten::alias",
      "aten::slice",      "aten::select",        "aten::resolve_conj", "aten::resolve_neg"};
  if (name == "aten::copy_") return Role::kCopy;
  if (std::find(kLayout.begin(), kLayout.end(), name) != kLayout.end()) return Role::kLayout;
  if (std::find(kPassOn.begin(), kPassOn.end(), name) != kPassOn.end()) return Role::kPassesOn;
  return is_product(std::string(name)) ? Role::kProduct : Role::kOther;
}

}  // namespace

void add_layout_copies(const analysis::RankView& rank, const analysis::StepRows& rows,
                       const analysis::CallTree& tree, LayoutCopyFacts& facts) {
  const trace::RankTimeline& timeline = *rank.timeline;
  std::vector<Role> roles(timeline.names.size());
  for (NameId id = 0; id < roles.size(); ++id) roles[id] = role_of(timeline.names[id]);
  const auto role_at = [&](std::size_t call) {
    return roles[timeline.name_id(tree.calls[call].row)];
  };
  const auto lays_out = [&](std::size_t call) {
    const std::size_t parent = tree.calls[call].parent;
    return parent != analysis::kNoParent && role_at(parent) == Role::kLayout;
  };
  const bool on_device = rank.activity.where == analysis::Where::kDevice;
  std::vector<double> waiting(timeline.tracks().size());  // of copies since the last other operator
  for (std::size_t call = 0; call < tree.calls.size(); ++call) {
    const analysis::Call& one = tree.calls[call];
    if (timeline.kind(one.row) != trace::Kind::kOperator || !rows.contain(one.row)) continue;
    double& before = waiting[timeline.track_of(one.row)];
    const auto time_ns = static_cast<double>(on_device ? one.device_self_ns : one.self_ns);
    switch (role_at(call)) {
      case Role::kCopy:
        facts.copies_ns += time_ns;
        if (lays_out(call)) before += time_ns;
        break;
      case Role::kProduct:
        facts.before_products_ns += before;
        before = 0;
        break;
      case Role::kOther:
        before = 0;
        break;
      case Role::kLayout:
      case Role::kPassesOn:
        break;
    }
  }
}

}  // namespace sidestream::advice
