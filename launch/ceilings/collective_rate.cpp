#include "launch/ceilings/collective_rate.hpp"

#include <algorithm>
#include <chrono>
#include <string>

#include "comm/communicator.hpp"
#include "core/base/error.hpp"

namespace sidestream::launch {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Buffers of one collective: of all_gather and reduce_scatter each rank's part lies in the whole.
class Trial {
 public:
  Trial(comm::Communicator& communicator, Collective collective, std::size_t bytes)
      : communicator_(communicator), collective_(collective) {
    const auto ranks = static_cast<std::size_t>(communicator.size());
    part_elements_ = std::max<std::size_t>(1, bytes / sizeof(float) / ranks);
    whole_ = communicator.allocate(part_elements_ * ranks * sizeof(float));
  }

  std::size_t bytes() const { return whole_.bytes; }

  double run() {
    communicator_.barrier();
    const auto begin = Clock::now();
    start().wait();
    return seconds_since(begin);
  }

 private:
  comm::Work start() {
    constexpr core::DType kType = core::DType::kFloat32;
    std::byte* const mine = whole_.data + static_cast<std::size_t>(communicator_.rank()) *
                                              part_elements_ * sizeof(float);
    switch (collective_) {
      case Collective::kAllReduce:
        return communicator_.all_reduce(whole_.data, whole_.bytes / sizeof(float), kType);
      case Collective::kAllGather:
        return communicator_.all_gather(mine, whole_.data, part_elements_, kType);
      case Collective::kReduceScatter:
        return communicator_.reduce_scatter(whole_.data, mine, part_elements_, kType);
    }
    throw core::Error("no such collective to measure");
  }

  comm::Communicator& communicator_;
  Collective collective_;
  std::size_t part_elements_ = 0;
  comm::Allocation whole_;
};

}  // namespace

std::string_view name_of(Collective collective) {
  switch (collective) {
    case Collective::kAllReduce:
      return "allreduce";
    case Collective::kAllGather:
      return "allgather";
    case Collective::kReduceScatter:
      return "reducescatter";
  }
  throw core::Error("no such collective to measure");
}

double CollectiveRate::algorithm_bytes_per_s() const {
  return static_cast<double>(bytes) / seconds;
}

double CollectiveRate::bus_bytes_per_s() const {
  const double ways = collective == Collective::kAllReduce ? 2 : 1;
  return ways * (ranks - 1) / ranks * algorithm_bytes_per_s();
}

CollectiveRate measure_collective(comm::Communicator& communicator, Collective collective,
                                  std::size_t bytes, double seconds) {
  Trial trial(communicator, collective, bytes);
  trial.run();
  CollectiveRate rate{
      .bytes = trial.bytes(), .ranks = communicator.size(), .collective = collective};
  const auto start = Clock::now();
  for (bool enough = false; !enough;) {
    const double mine = trial.run();
    // The slowest rank's time; the first rank says when it is enough.
    const bool over = seconds_since(start) >= seconds;
    double slowest = 0;
    const auto said = communicator.exchange(std::to_string(mine * 1e9) + (over ? "!" : ""));
    for (const std::string& one : said) slowest = std::max(slowest, std::stod(one) * 1e-9);
    rate.seconds = rate.seconds == 0 ? slowest : std::min(rate.seconds, slowest);
    enough = said.front().ends_with('!');
  }
  return rate;
}

}  // namespace sidestream::launch
