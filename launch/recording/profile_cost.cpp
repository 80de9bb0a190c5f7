#include "launch/recording/profile_cost.hpp"

namespace sidestream::launch {
namespace {

constexpr int kSetUpSteps = 3;
constexpr std::size_t kBeside = 32;       // steps on either side
constexpr std::size_t kLeastSteps = 3;    // below this many nothing is said
constexpr std::size_t kMostSteps = 4096;  // of each kind: a median needs no more

template <typename Value>
void add_bounded(std::vector<Value>& values, Value value) {
  if (values.size() < kMostSteps) values.push_back(value);
}

}  // namespace

void ProfileCost::add(std::int64_t step_ns, std::int64_t data_wait_ns, SeenStep seen) {
  const std::lock_guard lock(mutex_);
  if (steps_ < kSetUpSteps) {
    ++steps_;
    return;
  }
  const double ms = static_cast<double>(step_ns) * 1e-6;
  const PlainStep plain{.ms = ms, .data_wait_ms = static_cast<double>(data_wait_ns) * 1e-6};
  if (seen == SeenStep::kWarmUp) return;
  if (seen == SeenStep::kYes) {
    add_bounded(seen_ms_, ms);
    for (const PlainStep& before : newest_) add_bounded(beside_, before);
    newest_.clear();
    to_come_ = kBeside;
  } else if (to_come_ > 0) {
    --to_come_;
    add_bounded(beside_, plain);
  } else {
    newest_.push_back(plain);
    if (newest_.size() > kBeside) newest_.pop_front();
  }
}

std::vector<double> ProfileCost::plain_values_locked(double PlainStep::*figure) const {
  std::vector<double> values;
  const auto take = [&](const auto& steps) {
    for (const PlainStep& step : steps) values.push_back(step.*figure);
  };
  seen_ms_.empty() ? take(newest_) : take(beside_);
  if (values.size() < kLeastSteps) values.clear();
  return values;
}

std::optional<statistics::Middle> ProfileCost::plain_steps_locked() const {
  const std::vector<double> plain = plain_values_locked(&PlainStep::ms);
  return plain.empty() ? std::nullopt : std::optional(statistics::middle_of(plain));
}

std::optional<statistics::Middle> ProfileCost::plain_steps() const {
  const std::lock_guard lock(mutex_);
  return plain_steps_locked();
}

double ProfileCost::plain_data_wait_ms() const {
  const std::lock_guard lock(mutex_);
  const std::vector<double> waits = plain_values_locked(&PlainStep::data_wait_ms);
  return waits.empty() ? 0 : statistics::middle_of(waits).median;
}

std::optional<ProfileCost::Share> ProfileCost::share() const {
  const std::lock_guard lock(mutex_);
  const std::optional<statistics::Middle> plain = plain_steps_locked();
  if (!plain || seen_ms_.size() < kLeastSteps || plain->median <= 0) return std::nullopt;
  const statistics::Middle seen = statistics::middle_of(seen_ms_);
  return Share{.share = seen.median / plain->median - 1,
               .uncertainty = statistics::difference_uncertainty(seen, *plain) / plain->median,
               .seen = seen.count,
               .beside = plain->count};
}

}  // namespace sidestream::launch
