#include "launch/recording/profile_cost.hpp"

namespace sidestream::launch {
namespace {

constexpr int kSetUpSteps = 3;
constexpr std::size_t kBeside = 32;       // steps on either side
constexpr std::size_t kLeastSteps = 3;    // below this many nothing is said
constexpr std::size_t kMostSteps = 4096;  // of each kind: a median needs no more

void add_bounded(std::vector<double>& values, double value) {
  if (values.size() < kMostSteps) values.push_back(value);
}

}  // namespace

void ProfileCost::add(std::int64_t step_ns, SeenStep seen) {
  const std::lock_guard lock(mutex_);
  if (steps_ < kSetUpSteps) {
    ++steps_;
    return;
  }
  const double ms = static_cast<double>(step_ns) * 1e-6;
  if (seen == SeenStep::kWarmUp) return;
  if (seen == SeenStep::kYes) {
    add_bounded(seen_ms_, ms);
    for (const double before : newest_ms_) add_bounded(beside_ms_, before);
    newest_ms_.clear();
    to_come_ = kBeside;
  } else if (to_come_ > 0) {
    --to_come_;
    add_bounded(beside_ms_, ms);
  } else {
    newest_ms_.push_back(ms);
    if (newest_ms_.size() > kBeside) newest_ms_.pop_front();
  }
}

std::optional<statistics::Middle> ProfileCost::plain_locked() const {
  const std::vector<double> plain =
      seen_ms_.empty() ? std::vector<double>(newest_ms_.begin(), newest_ms_.end()) : beside_ms_;
  if (plain.size() < kLeastSteps) return std::nullopt;
  return statistics::middle_of(plain);
}

std::optional<statistics::Middle> ProfileCost::plain_steps() const {
  const std::lock_guard lock(mutex_);
  return plain_locked();
}

std::optional<ProfileCost::Share> ProfileCost::share() const {
  const std::lock_guard lock(mutex_);
  const std::optional<statistics::Middle> plain = plain_locked();
  if (!plain || seen_ms_.size() < kLeastSteps || plain->median <= 0) return std::nullopt;
  const statistics::Middle seen = statistics::middle_of(seen_ms_);
  return Share{.share = seen.median / plain->median - 1,
               .uncertainty = statistics::difference_uncertainty(seen, *plain) / plain->median,
               .seen = seen.count,
               .beside = plain->count};
}

}  // namespace sidestream::launch
