#include "profiling/record/names.hpp"

#include <charconv>

namespace sidestream::record {
namespace {

// The number behind "ProfilerStep#", or -1.
std::int64_t step_in(std::string_view name) {
  if (!name.starts_with(ranges::kStepPrefix)) return -1;
  const std::string_view digits = name.substr(ranges::kStepPrefix.size());
  std::int64_t step = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  return error == std::errc() && end == digits.data() + digits.size() ? step : -1;
}

}  // namespace

NameTable::NameTable() {
  texts_.emplace_back("other");
  for (const ranges::PhaseInfo& phase : ranges::kPhases) {
    numbers_.emplace(phase.name, texts_.size());
    texts_.emplace_back(phase.name);
  }
}

NameId NameTable::intern(std::string_view name) {
  if (const std::int64_t step = step_in(name); step >= 0)
    return kStepBit | static_cast<NameId>(step);
  const std::lock_guard lock(mutex_);
  const auto known = numbers_.find(std::string(name));
  if (known != numbers_.end()) return known->second;
  if (texts_.size() >= kMostNames) return kOtherName;
  texts_.emplace_back(name);
  return numbers_.emplace(texts_.back(), texts_.size() - 1).first->second;
}

std::string NameTable::text(NameId name) const {
  if (is_step(name)) return ranges::step_name(step_of(name));
  const std::lock_guard lock(mutex_);
  return texts_[name < texts_.size() ? name : kOtherName];
}

}  // namespace sidestream::record
