#include "launch/ceilings/repetitions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <utility>

#include "comm/communicator.hpp"
#include "launch/ceilings/seconds_since.hpp"

namespace sidestream::launch {
namespace {

// What a rank says after a repetition, and reads of the others.
constexpr char kGoesOn = 'g', kHasEnough = 'e', kWasAskedToStop = 's';

}  // namespace

Repetitions::Repetitions(comm::Communicator& communicator, RepeatRule rule)
    : communicator_(communicator),
      rule_(std::move(rule)),
      begin_(std::chrono::steady_clock::now()) {}

int Repetitions::next(int most) const {
  return rule_.repeats ? std::clamp(*rule_.repeats - done_, 1, most) : most;
}

bool Repetitions::enough() const {
  return rule_.repeats ? done_ >= *rule_.repeats : seconds_since(begin_) >= rule_.seconds;
}

std::vector<double> Repetitions::slowest_of(std::initializer_list<double> mine_s, int repetitions) {
  done_ += repetitions;
  std::string mine(1, rule_.stop_requested() ? kWasAskedToStop : enough() ? kHasEnough : kGoesOn);
  for (const double time_s : mine_s) mine += fmt::format(" {:.9g}", time_s);
  const std::vector<std::string> said = communicator_.exchange(mine);
  std::vector<double> slowest_s(mine_s.size(), 0);
  for (const std::string& one : said) {
    std::istringstream words(one);
    char word = kGoesOn;
    words >> word;
    stopped_ = stopped_ || word == kWasAskedToStop;
    for (double& slowest : slowest_s) {
      double time_s = 0;
      words >> time_s;
      slowest = std::max(slowest, time_s);
    }
  }
  over_ = stopped_ || said.front().front() == kHasEnough;
  return slowest_s;
}

}  // namespace sidestream::launch
