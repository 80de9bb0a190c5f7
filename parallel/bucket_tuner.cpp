#include "parallel/bucket_tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/base/error.hpp"
#include "profiling/statistics/median.hpp"

namespace sidestream::parallel {
namespace {

using statistics::upper_median;

constexpr std::int64_t kMeasuredSteps = 4;
constexpr std::int64_t kPause = 256;  // backwards from one decision to the next measurement

// Of the time to the last collective's end: a cut that promises less is not worth other traces.
constexpr double kWorthWhile = 0.005;

// Buckets are cut for a link that is so much slower than it was seen to be: the best cut for the
// link as it was may begin as late as it can, and every disturbance then stays behind the backward.
constexpr double kSlowerLink = 1.2;

// Sizes less apart show no latency beside the noise of their times.
constexpr double kApart = 1.25;

// Of the latency seen before: what takes less goes over another link than it did then.
constexpr double kSameLink = 0.8;

double seconds(std::int64_t ns) { return static_cast<double>(ns) * 1e-9; }

void append(std::string& bytes, const std::vector<double>& values) {
  bytes.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double));
}

std::vector<double> numbers_of(const std::string& bytes, std::size_t expected) {
  if (bytes.size() != expected * sizeof(double))
    throw core::Error(
        fmt::format("Times of a backward: expected {} bytes of a rank, found {} bytes.",
                    expected * sizeof(double), bytes.size()));
  std::vector<double> values(expected);
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// What all ranks have said: gradients are there when the last rank has them; a collective takes
// what it takes the rank that came last to it, for the others waited.
struct Account {
  std::vector<double> ready_s;
  std::vector<std::vector<double>> transfer_s;  // by bucket, of each step
};

Account join(const std::vector<std::string>& all, std::size_t parameters, std::size_t buckets) {
  const std::size_t transfers = buckets * static_cast<std::size_t>(kMeasuredSteps);
  std::vector<double> joined = numbers_of(all.at(0), parameters + transfers);
  for (const std::string& bytes : all) {
    const std::vector<double> of_rank = numbers_of(bytes, joined.size());
    for (std::size_t i = 0; i < joined.size(); ++i)
      joined[i] =
          i < parameters ? std::max(joined[i], of_rank[i]) : std::min(joined[i], of_rank[i]);
  }
  Account account{
      .ready_s = {joined.begin(), joined.begin() + static_cast<std::ptrdiff_t>(parameters)},
      .transfer_s = std::vector<std::vector<double>>(buckets)};
  for (std::size_t i = 0; i < transfers; ++i)
    account.transfer_s[i % buckets].push_back(joined[parameters + i]);
  return account;
}

std::size_t bytes_of(const Bucket& bucket, core::DType dtype) {
  return bucket.elements * core::size_of(dtype);
}

std::vector<TransferSample> samples_of(const Account& account, const BucketPlan& plan,
                                       core::DType dtype) {
  std::vector<TransferSample> samples;
  for (std::size_t b = 0; b < plan.buckets.size(); ++b)
    samples.push_back({.bytes = bytes_of(plan.buckets[b], dtype),
                       .seconds = upper_median(account.transfer_s[b])});
  return samples;
}

bool are_nearly_alike(const std::vector<TransferSample>& samples) {
  const auto [smallest, largest] = std::minmax_element(
      samples.begin(), samples.end(),
      [](const TransferSample& a, const TransferSample& b) { return a.bytes < b.bytes; });
  return static_cast<double>(largest->bytes) < kApart * static_cast<double>(smallest->bytes) ||
         largest->bytes == smallest->bytes;
}

// Of samples that are nearly alike.
TransferSample middle_of(const std::vector<TransferSample>& samples) {
  std::vector<double> bytes;
  std::vector<double> seconds;
  for (const TransferSample& sample : samples) {
    bytes.push_back(static_cast<double>(sample.bytes));
    seconds.push_back(sample.seconds);
  }
  return {.bytes = static_cast<std::size_t>(upper_median(std::move(bytes))),
          .seconds = upper_median(std::move(seconds))};
}

// In the order of the plan. A parameter ends where the next one begins, or with what its bucket
// holds.
GradientTimes times_of(const Account& account, const BucketPlan& plan, core::DType dtype) {
  GradientTimes times;
  for (const Bucket& bucket : plan.buckets) {
    const std::size_t end = bucket.offset_elements + bucket.used_elements;
    for (std::size_t i = 0; i < bucket.parameters.size(); ++i) {
      const std::size_t parameter = bucket.parameters[i];
      const std::size_t next =
          i + 1 < bucket.parameters.size() ? plan.offsets[bucket.parameters[i + 1]] : end;
      times.ready_s.push_back(account.ready_s[parameter]);
      times.bytes.push_back((next - plan.offsets[parameter]) * core::size_of(dtype));
    }
  }
  return times;
}

BucketCut cut_of(const BucketPlan& plan) {
  BucketCut cut;
  for (const Bucket& bucket : plan.buckets) cut.push_back(bucket.parameters.size());
  return cut;
}

// A bucket of two others, or the end of the gradients in one of its own: two sizes, so that the
// next steps tell apart what a collective and what a byte takes.
std::optional<BucketProposal> probing_cut(const GradientTimes& times, const BucketCut& current) {
  BucketCut cut = current;
  if (cut.size() > 2) {
    cut[1] += cut[0];
    cut.erase(cut.begin());
  } else {
    if (times.bytes.size() < 2) return std::nullopt;
    const std::size_t total =
        std::accumulate(times.bytes.begin(), times.bytes.end(), std::size_t{0});
    std::size_t last = 0;
    for (std::size_t bytes = 0; last + 1 < times.bytes.size() && bytes < total / 4; ++last)
      bytes += times.bytes[times.bytes.size() - 1 - last];
    cut = {times.bytes.size() - last, last};
  }
  std::string reason = fmt::format(
      "buckets: {} instead of {} for a few steps, to see what a byte takes beside a collective",
      cut.size(), current.size());
  return BucketProposal{.cut = std::move(cut), .reason = std::move(reason)};
}

std::optional<BucketProposal> better_cut(const GradientTimes& times, const TransferCost& cost,
                                         const BucketPlan& plan, std::size_t moved_bytes) {
  const BucketCut current = cut_of(plan);
  TransferCost slower = cost;
  slower.s_per_byte *= kSlowerLink;
  BucketCut best = best_cut(times, slower, plan.most_buckets);
  const double before = end_of_collectives(times, cost, current);
  double after = end_of_collectives(times, cost, best);
  // What is reduced to slices is gathered again, a collective a bucket.
  if (plan.slices > 1)
    after +=
        cost.latency_s * (static_cast<double>(best.size()) - static_cast<double>(current.size()));
  const double move_s = cost.s_per_byte * static_cast<double>(moved_bytes);
  if (before - after < std::max(kWorthWhile * before, move_s / kPause)) return std::nullopt;
  const double ready_s = *std::max_element(times.ready_s.begin(), times.ready_s.end());
  std::string reason = fmt::format(
      "buckets: {} instead of {}, for a collective takes {:.2f} ms and {:.1f} ms for each 25 MiB: "
      "{:.1f} instead of {:.1f} ms should stay behind forward and backward of {:.1f} ms",
      best.size(), current.size(), cost.latency_s * 1e3, cost.s_per_byte * (25 << 20) * 1e3,
      (after - ready_s) * 1e3, (before - ready_s) * 1e3, ready_s * 1e3);
  return BucketProposal{.cut = std::move(best), .reason = std::move(reason)};
}

}  // namespace

BucketTuner::BucketTuner(comm::Communicator& communicator, NowNs now_ns)
    : communicator_(communicator), now_ns_(std::move(now_ns)) {}

bool BucketTuner::measures() const noexcept {
  return backwards_ > pause_ && measured_.size() < static_cast<std::size_t>(kMeasuredSteps);
}

void BucketTuner::backward_begins(const BucketPlan& plan) {
  ++backwards_;
  current_.ready_s.assign(plan.bucket_of_parameter.size(), 0);
  began_ns_ = now_ns_();
}

void BucketTuner::gradient_ready(std::size_t parameter) {
  current_.ready_s.at(parameter) = seconds(now_ns_() - began_ns_);
}

void BucketTuner::backward_ended(const std::vector<std::optional<comm::WorkSpan>>& collectives) {
  if (!measures()) return;
  current_.transfer_s.clear();
  for (const auto& span : collectives) {
    if (!span) return;  // not seen by this backend, on no rank
    current_.transfer_s.push_back(seconds(span->end_ns - span->begin_ns));
  }
  measured_.push_back(current_);
}

void BucketTuner::plan_changed() {
  measured_.clear();
  backwards_ = 0;
  pause_ = 1;
}

std::string BucketTuner::own_account() const {
  std::vector<double> ready_s;
  for (std::size_t i = 0; i < measured_.front().ready_s.size(); ++i) {
    std::vector<double> of_steps;
    for (const Measured& step : measured_) of_steps.push_back(step.ready_s[i]);
    ready_s.push_back(upper_median(std::move(of_steps)));
  }
  std::string bytes;
  append(bytes, ready_s);
  for (const Measured& step : measured_) append(bytes, step.transfer_s);
  return bytes;
}

// Buckets of one size show no latency: the last one that was seen is taken, while it can be true.
std::optional<TransferCost> BucketTuner::cost_of(const std::vector<TransferSample>& samples) {
  if (!are_nearly_alike(samples)) return last_cost_ = fit_transfer_cost(samples);
  if (!last_cost_) return std::nullopt;
  const TransferSample middle = middle_of(samples);
  if (middle.seconds < kSameLink * last_cost_->latency_s) {
    last_cost_.reset();
  } else {
    last_cost_->s_per_byte = std::max(0.0, middle.seconds - last_cost_->latency_s) /
                             static_cast<double>(std::max<std::size_t>(middle.bytes, 1));
  }
  return last_cost_;
}

std::optional<BucketProposal> BucketTuner::propose(const BucketPlan& plan, core::DType dtype,
                                                   std::size_t moved_bytes) {
  if (measured_.size() < static_cast<std::size_t>(kMeasuredSteps)) return std::nullopt;
  const std::vector<std::string> all =
      communicator_.exchange(own_account(), {.purpose = "times of backward"});
  measured_.clear();
  backwards_ = 0;
  pause_ = kPause;
  const Account account = join(all, plan.bucket_of_parameter.size(), plan.buckets.size());
  const GradientTimes times = times_of(account, plan, dtype);
  if (auto cost = cost_of(samples_of(account, plan, dtype))) {
    probed_ = false;
    cost->step_bytes = plan.step_elements() * core::size_of(dtype);
    return better_cut(times, *cost, plan, moved_bytes);
  }
  if (std::exchange(probed_, true)) return std::nullopt;
  pause_ = 1;
  return probing_cut(times, cut_of(plan));
}

std::unique_ptr<BucketTuner> make_bucket_tuner(const DataParallelConfig& config,
                                               comm::Communicator& communicator) {
  const bool wanted = config.gradient_sync == GradientSync::kOverlapped && !config.bucket_mb;
  if (!wanted || communicator.topology().node_count == 1 || communicator.device()) return nullptr;
  return std::make_unique<BucketTuner>(communicator);
}

}  // namespace sidestream::parallel
