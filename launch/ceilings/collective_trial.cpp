#include "launch/ceilings/collective_trial.hpp"

#include <algorithm>
#include <chrono>
#include <vector>

#include "core/base/error.hpp"
#include "launch/ceilings/seconds_since.hpp"

namespace sidestream::launch {
namespace {

using Clock = std::chrono::steady_clock;

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

CollectiveTrial::CollectiveTrial(comm::Communicator& communicator, const CollectiveKind& kind,
                                 std::size_t bytes)
    : communicator_(communicator), kind_(kind) {
  const auto ranks = static_cast<std::size_t>(communicator.size());
  part_elements_ = std::max<std::size_t>(1, bytes / core::size_of(kind.dtype) / ranks);
  whole_ = communicator.allocate(part_elements_ * ranks * core::size_of(kind.dtype));
}

comm::Work CollectiveTrial::start(const comm::CollectiveOptions& options) {
  const std::size_t element_bytes = core::size_of(kind_.dtype);
  std::byte* const mine =
      whole_.data + static_cast<std::size_t>(communicator_.rank()) * part_elements_ * element_bytes;
  switch (kind_.collective) {
    case Collective::kAllReduce:
      return communicator_.all_reduce(whole_.data, whole_.bytes / element_bytes, kind_.dtype,
                                      options);
    case Collective::kAllGather:
      return communicator_.all_gather(mine, whole_.data, part_elements_, kind_.dtype, options);
    case Collective::kReduceScatter:
      return communicator_.reduce_scatter(whole_.data, mine, part_elements_, kind_.dtype, options);
  }
  throw core::Error("no such collective to measure");
}

double CollectiveTrial::run(int operations) {
  const comm::CollectiveOptions options = comm::waited_for();
  const bool queues = communicator_.device().has_value();
  std::vector<comm::Work> queued;
  communicator_.barrier();
  const auto begin = Clock::now();
  for (int i = 0; i < operations; ++i) {
    comm::Work work = start(options);
    if (queues) {
      queued.push_back(std::move(work));
    } else {
      work.wait();
    }
  }
  for (comm::Work& work : queued) work.wait();
  return seconds_since(begin) / operations;
}

}  // namespace sidestream::launch
