#include "launch/ceilings/overlap_rate.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "launch/ceilings/seconds_since.hpp"
#include "launch/ceilings/timed_products.hpp"
#include "parallel/tensor_types.hpp"
#include "profiling/statistics/median.hpp"

namespace sidestream::launch {
namespace {

using Clock = std::chrono::steady_clock;

struct Together {
  double compute_s = 0;
  double all_s = 0;
};

// One collective and one row of products, alone and together; each from a barrier on.
class OverlapTrial {
 public:
  OverlapTrial(comm::Communicator& communicator, CollectiveTrial& collective,
               TimedProducts& products)
      : communicator_(communicator), collective_(collective), products_(products) {}

  double compute() {
    communicator_.barrier();
    return products_.run();
  }

  double collective() {
    communicator_.barrier();
    const auto begin = Clock::now();
    collective_.start({.after = products_.stream()}).wait();
    return seconds_since(begin);
  }

  Together together() {
    communicator_.barrier();
    const auto begin = Clock::now();
    comm::Work work = collective_.start({.after = products_.stream()});
    products_.queue();
    products_.finish();
    const double compute_s = seconds_since(begin);
    work.wait();
    return {.compute_s = compute_s, .all_s = seconds_since(begin)};
  }

 private:
  comm::Communicator& communicator_;
  CollectiveTrial& collective_;
  TimedProducts& products_;
};

double slowest_of(comm::Communicator& communicator, double mine_s) {
  return Repetitions(communicator, {.repeats = 1}).slowest_of({mine_s}).front();
}

// By the shortest of a few: other work of the machine must not stretch what is measured.
TimedProducts products_as_long_as(comm::Communicator& communicator, CollectiveTrial& collective,
                                  const torch::Device& device, torch::ScalarType dtype) {
  constexpr int kTries = 5;
  TimedProducts any(device, dtype, /*extent=*/1, /*count=*/1);
  OverlapTrial trial(communicator, collective, any);
  double least_s = slowest_of(communicator, trial.collective());
  for (int i = 1; i < kTries; ++i)
    least_s = std::min(least_s, slowest_of(communicator, trial.collective()));
  return TimedProducts::lasting(least_s, device, dtype,
                                [&](double mine_s) { return slowest_of(communicator, mine_s); });
}

}  // namespace

double OverlapRate::hidden_share() const {
  return (compute_s + collective_s - together_s) / std::min(compute_s, collective_s);
}

double OverlapRate::compute_slowdown() const { return compute_in_company_s / compute_s - 1; }

OverlapRate measure_overlap(comm::Communicator& communicator, const CollectiveKind& kind,
                            std::size_t bytes, const torch::Device& device,
                            const RepeatRule& rule) {
  CollectiveTrial collective(communicator, kind, bytes);
  TimedProducts products =
      products_as_long_as(communicator, collective, device, parallel::scalar_type_of(kind.dtype));
  OverlapTrial trial(communicator, collective, products);
  std::vector<double> compute_s, collective_s, together_s, in_company_s;
  Repetitions repetitions(communicator, rule);
  while (repetitions.go_on()) {
    const double compute = trial.compute(), alone = trial.collective();
    const Together both = trial.together();
    const auto slowest_s = repetitions.slowest_of({compute, alone, both.all_s, both.compute_s});
    compute_s.push_back(slowest_s[0]);
    collective_s.push_back(slowest_s[1]);
    together_s.push_back(slowest_s[2]);
    in_company_s.push_back(slowest_s[3]);
  }
  return {.bytes = collective.bytes(),
          .compute_s = statistics::median(compute_s),
          .collective_s = statistics::median(collective_s),
          .together_s = statistics::median(together_s),
          .compute_in_company_s = statistics::median(in_company_s),
          .repeats = repetitions.done(),
          .stopped = repetitions.stopped()};
}

}  // namespace sidestream::launch
