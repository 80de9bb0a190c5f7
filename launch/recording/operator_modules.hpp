// Which layer an operator belongs to. In forward: the innermost layer range around it on its
// thread. In backward: the layer of the forward operator with the same sequence number, for the
// whole of what autograd runs for it.
//
// Threads count sequence numbers each for themselves. What backward computes again (--recompute) is
// forward on the thread of backward, which is another one on a GPU: operators that ran inside of a
// backward, and the backwards inside of backwards that belong to them, are looked up apart.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiling/record/recorder.hpp"

namespace sidestream::launch {

// Times in nanoseconds of one clock, whichever.
struct OperatorPlace {
  std::int64_t thread_id = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t sequence = -1;  // -1: none
  bool is_backward = false;    // autograd ran it for an operator of forward
};

class OperatorModules {
 public:
  // pattern: "on", or what layer names must match (as file names do in a shell:
  // transformer.h.*.mlp)
  explicit OperatorModules(std::string pattern) : pattern_(std::move(pattern)) {}

  void add_layer(std::int64_t thread_id, std::int64_t start_ns, std::int64_t end_ns,
                 const std::string& name);
  bool any_layer() const noexcept { return !layers_.empty(); }
  // Of a layer that the pattern does not match; empty: there is none.
  const std::string& other_layer() const noexcept { return other_layer_; }
  // First all operators of forward and backward, in any order, then questions.
  void note(const OperatorPlace& place);
  // Sorts what was noted; empty for an operator of no layer.
  std::string_view module_of(const OperatorPlace& place);

 private:
  struct Span {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::string name = {};
    std::int64_t sequence = -1;
    bool inside = false;  // of another backward
  };
  using Spans = std::map<std::int64_t, std::vector<Span>>;  // by thread

  static const Span* innermost(const Spans& spans, const OperatorPlace& place);
  void settle();
  void mark_inside();

  std::string pattern_;
  std::string other_layer_;
  bool settled_ = false;
  Spans layers_;
  Spans backward_;
  std::vector<OperatorPlace> forward_;
  // By sequence number: of forward proper, and of what ran inside of a backward.
  std::unordered_map<std::int64_t, std::string> layer_of_sequence_, layer_inside_;
};

}  // namespace sidestream::launch
