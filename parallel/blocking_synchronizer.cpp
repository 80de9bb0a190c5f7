#include "parallel/blocking_synchronizer.hpp"

namespace sidestream::parallel {

void BlockingSynchronizer::finish(const std::function<void(std::size_t)>& on_reduced) {
  for (std::size_t bucket = 0; bucket < bucket_count(); ++bucket) {
    comm::Work work = start(bucket, comm::waited_for());
    wait(work);
    on_reduced(bucket);
  }
}

}  // namespace sidestream::parallel
