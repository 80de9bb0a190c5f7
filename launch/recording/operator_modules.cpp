#include "launch/recording/operator_modules.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace sidestream::launch {

void OperatorModules::add_layer(std::int64_t thread_id, std::int64_t start_ns, std::int64_t end_ns,
                                const std::string& name) {
  if (pattern_ != "on" && fnmatch(pattern_.c_str(), name.c_str(), 0) != 0) {
    if (other_layer_.empty()) other_layer_ = name;
    return;
  }
  layers_[thread_id].push_back({start_ns, end_ns, name});
}

void OperatorModules::note(const OperatorPlace& place) {
  if (place.sequence < 0) return;
  if (place.is_backward) {
    backward_[place.thread_id].push_back({place.start_ns, place.end_ns, {}, place.sequence});
    return;
  }
  forward_.push_back(place);
}

void OperatorModules::settle() {
  if (std::exchange(settled_, true)) return;
  const auto by_start = [](const Span& a, const Span& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  };
  for (auto* spans : {&layers_, &backward_}) {
    for (auto& [thread, list] : *spans) std::sort(list.begin(), list.end(), by_start);
  }
  mark_inside();
  // Several operators may carry the same number; the first is the outermost.
  for (const OperatorPlace& place : forward_) {
    const Span* layer = innermost(layers_, place);
    if (layer == nullptr) continue;
    auto& layers = innermost(backward_, place) == nullptr ? layer_of_sequence_ : layer_inside_;
    layers.try_emplace(place.sequence, layer->name);
  }
  forward_.clear();
}

void OperatorModules::mark_inside() {
  for (auto& [thread, list] : backward_) {
    std::int64_t outer_end_ns = std::numeric_limits<std::int64_t>::min();
    for (Span& span : list) {
      span.inside = span.start_ns < outer_end_ns;
      outer_end_ns = std::max(outer_end_ns, span.end_ns);
    }
  }
}

// Spans of a thread nest: walking back from the last that starts before, the first that contains
// the place is the innermost.
const OperatorModules::Span* OperatorModules::innermost(const Spans& spans,
                                                        const OperatorPlace& place) {
  constexpr int kMostSteps = 4096;
  const auto thread = spans.find(place.thread_id);
  if (thread == spans.end()) return nullptr;
  const std::vector<Span>& list = thread->second;
  auto at = std::upper_bound(
      list.begin(), list.end(), place.start_ns,
      [](std::int64_t start_ns, const Span& span) { return start_ns < span.start_ns; });
  for (int i = 0; at != list.begin() && i < kMostSteps; ++i) {
    --at;
    if (at->end_ns >= place.end_ns) return &*at;
  }
  return nullptr;
}

std::string_view OperatorModules::module_of(const OperatorPlace& place) {
  settle();
  if (const Span* layer = innermost(layers_, place)) return layer->name;
  const Span* node = innermost(backward_, place);
  if (node == nullptr) return {};
  const auto& layers = node->inside ? layer_inside_ : layer_of_sequence_;
  const auto layer = layers.find(node->sequence);
  return layer == layers.end() ? std::string_view() : layer->second;
}

}  // namespace sidestream::launch
