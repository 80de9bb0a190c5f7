#include <algorithm>
#include <chrono>
#include <string>

#include "comm/communicator.hpp"
#include "launch/ceilings/ceilings.hpp"

namespace sidestream::launch {

double measure_link(comm::Communicator& communicator, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const auto buffer = communicator.allocate(kBytes);
  const int ranks = communicator.size();
  const double moved = 2.0 * (ranks - 1) / ranks * static_cast<double>(kBytes);
  double best = 0;
  const auto start = Clock::now();
  for (bool enough = false; !enough;) {
    communicator.barrier();
    const auto begin = Clock::now();
    communicator.all_reduce(buffer.data, kBytes / sizeof(float), core::DType::kFloat32).wait();
    const double mine = std::chrono::duration<double>(Clock::now() - begin).count();
    // The slowest rank's time; the first rank says when it is enough.
    double slowest = 0;
    const bool over = std::chrono::duration<double>(Clock::now() - start).count() >= seconds;
    const auto said = communicator.exchange(std::to_string(mine) + (over ? "!" : ""));
    for (const std::string& one : said) slowest = std::max(slowest, std::stod(one));
    best = std::max(best, moved / slowest);
    enough = said.front().ends_with('!');
  }
  return best;
}

}  // namespace sidestream::launch
