// Figures that a run noted of itself, as far as they can be.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace sidestream::report {

struct Bounds {
  double least = 0, most = 0;
};
constexpr Bounds kShare = {0, 1};
constexpr Bounds kMfuBounds = {0, 1e6};  // above 1 where the ceilings are too low
constexpr Bounds kRate = {0, 1e15};      // a second
constexpr Bounds kSeconds = {0, 1e10};   // 300 years
constexpr Bounds kCount = {0, 1e15};

// Of one file. What is no number or beyond its bounds is left out; the first of a key is a fault.
class Figures {
 public:
  Figures(std::string file, std::vector<std::string>& faults)
      : file_(std::move(file)), faults_(&faults) {}

  // Where the objects come from that are asked next: "line 3".
  void go_to(std::string place) { place_ = std::move(place); }

  // Nothing where the key is missing or null, too.
  std::optional<double> take(const nlohmann::json& object, const char* key, const Bounds& bounds);

 private:
  std::string file_, place_;
  std::set<std::string> told_;
  std::vector<std::string>* faults_;
};

}  // namespace sidestream::report
