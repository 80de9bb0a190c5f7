// What figures of a run can be, in every file that notes them.
#pragma once

namespace sidestream::core {

struct NumberBounds {
  double least = 0, most = 0;

  bool hold(double value) const { return value >= least && value <= most; }
};

namespace bounds {
inline constexpr NumberBounds kCount = {0, 1e15};
inline constexpr NumberBounds kRate = {0, 1e15};    // a second
inline constexpr NumberBounds kSeconds = {0, 1e9};  // 30 years
inline constexpr NumberBounds kMilliseconds = {0, 1e12};
}  // namespace bounds

}  // namespace sidestream::core
