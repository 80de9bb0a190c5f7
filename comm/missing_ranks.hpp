// The ranks that a message names, each with what is known of it: the first of them, and how many
// more there are. Where a whole network is gone each rank misses hundreds.
#pragma once

#include <string>

namespace sidestream::comm {

class MissingRanks {
 public:
  // "rank 3 on node7 (gives no sign of life)"
  void add(const std::string& rank) {
    ++count_;
    if (count_ > kMostNamed) return;
    if (count_ > 1) text_ += ", ";
    text_ += rank;
  }

  // Empty: there is none.
  std::string text() const {
    if (count_ <= kMostNamed) return text_;
    return text_ + " and " + std::to_string(count_ - kMostNamed) + " more";
  }

 private:
  static constexpr int kMostNamed = 8;

  std::string text_;
  int count_ = 0;
};

}  // namespace sidestream::comm
