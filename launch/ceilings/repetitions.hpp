// When a measurement that all ranks repeat together is at its end, and what the slowest rank took.
//
//   Repetitions repetitions(communicator, rule);
//   while (repetitions.go_on()) total_s += repetitions.slowest_of({measure_once()}).front();
#pragma once

#include <chrono>
#include <functional>
#include <initializer_list>
#include <optional>
#include <vector>

namespace sidestream::comm {
class Communicator;
}

namespace sidestream::launch {

struct RepeatRule {
  double seconds = 1;                                           // on the first rank's clock
  std::optional<int> repeats = {};                              // instead
  std::function<bool()> stop_requested = [] { return false; };  // of this rank; asked in between
};

class Repetitions {
 public:
  // Begins now; outlived by the communicator.
  Repetitions(comm::Communicator& communicator, RepeatRule rule);

  // The same on all ranks. There is one repetition at least, unless a stop was asked for.
  bool go_on() const noexcept { return !over_; }
  // Some rank was asked to stop.
  bool stopped() const noexcept { return stopped_; }
  int done() const noexcept { return done_; }
  // `most`, or what is left of RepeatRule::repeats.
  int next(int most) const;

  // Collective, after `repetitions` of them: the longest of each of these times over the ranks.
  std::vector<double> slowest_of(std::initializer_list<double> mine_s, int repetitions = 1);

 private:
  bool enough() const;

  comm::Communicator& communicator_;
  RepeatRule rule_;
  std::chrono::steady_clock::time_point begin_;
  int done_ = 0;
  bool over_ = false;
  bool stopped_ = false;
};

}  // namespace sidestream::launch
