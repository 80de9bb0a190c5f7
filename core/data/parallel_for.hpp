// Calls work(0) ... work(count - 1) on up to `threads` threads, the caller's included, in rising
// order of start. Nothing above an index that threw is started; of several exceptions the one of
// the lowest index is rethrown, so that a failure does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sidestream::data {

struct ParallelFor {
  std::uint64_t count = 0;
  int threads = 1;
  std::string thread_name = "ss-worker";  // at most 15 characters are shown
  // Asked by each thread before it starts another index; true: no more of them. Empty: never.
  std::function<bool()> is_over = {};
};

// `work` gets the index and the number of the thread, 0 <= thread < threads, for state of its own.
// How many were done: `count`, or those from 0 on that were started before the time was over.
std::uint64_t parallel_for(const ParallelFor& options,
                           const std::function<void(std::uint64_t, int)>& work);

// Calls each of `tasks` once, in the same way: the longest should stand first.
void parallel_tasks(int threads, const std::vector<std::function<void()>>& tasks);

}  // namespace sidestream::data
