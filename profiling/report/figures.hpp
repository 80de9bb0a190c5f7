// Figures that a run noted of itself, as far as they can be.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/json_fault.hpp"

namespace sidestream::report {

constexpr core::NumberBounds kShare = {0, 1 + 1e-9};  // of sums, which are rounded
constexpr core::NumberBounds kMfuBounds = {0, 1e6};   // above 1 where the peak is too low
constexpr core::NumberBounds kRemainder = {-core::bounds::kSeconds.most,
                                           core::bounds::kSeconds.most};

// Of one file. What is no number or beyond its bounds is refused; the first of a key is a fault.
class Figures {
 public:
  Figures(std::string file, std::vector<std::string>& faults)
      : file_(std::move(file)), faults_(&faults) {}

  // What is asked next is of this line.
  void go_to_line(int number) { line_ = number; }

  // Nothing where the key is missing or null, too.
  std::optional<double> take(const nlohmann::json& object, const char* key,
                             const core::NumberBounds& bounds);

  // How many have been refused.
  int refused() const { return refused_; }

 private:
  std::string file_;
  std::optional<int> line_;
  std::set<std::string> told_;
  std::vector<std::string>* faults_;
  int refused_ = 0;
};

}  // namespace sidestream::report
