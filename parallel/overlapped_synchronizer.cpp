#include "parallel/overlapped_synchronizer.hpp"

#include <exception>

#include "core/base/error.hpp"

namespace sidestream::parallel {

OverlappedSynchronizer::~OverlappedSynchronizer() {
  for (comm::Work& work : in_flight_) {
    try {
      work.wait();
    } catch (const std::exception&) {
      continue;  // see the header
    }
  }
}

void OverlappedSynchronizer::begin() {
  reset_clock();
  ready_.assign(bucket_count(), false);
  in_flight_.clear();
}

void OverlappedSynchronizer::bucket_ready(std::size_t bucket) {
  ready_.at(bucket) = true;
  while (in_flight_.size() < ready_.size() && ready_[in_flight_.size()]) {
    in_flight_.push_back(start(in_flight_.size()));
  }
}

void OverlappedSynchronizer::finish(const std::function<void(std::size_t)>& on_reduced) {
  if (in_flight_.size() != bucket_count()) {
    throw core::Error("Gradients were to be finished before every bucket was ready.");
  }
  for (std::size_t bucket = 0; bucket < in_flight_.size(); ++bucket) {
    wait(in_flight_[bucket]);
    on_reduced(bucket);
  }
}

std::vector<std::optional<comm::WorkSpan>> OverlappedSynchronizer::spans() const {
  std::vector<std::optional<comm::WorkSpan>> spans;
  for (const comm::Work& work : in_flight_) spans.push_back(work.span());
  return spans;
}

}  // namespace sidestream::parallel
