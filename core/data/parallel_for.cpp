#include "core/data/parallel_for.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "core/base/worker_thread.hpp"

namespace sidestream::data {
namespace {

class Job {
 public:
  Job(const ParallelFor& options, const std::function<void(std::uint64_t, int)>& work)
      : options_(options), limit_(options.count), work_(work) {}

  // Below the lowest index that failed everything still runs: that one may fail too, and is then
  // the one to report.
  void run(int thread) {
    while (!options_.is_over || !options_.is_over()) {
      const std::uint64_t i = next_++;
      if (i >= limit_) return;
      try {
        work_(i, thread);
      } catch (...) {
        keep(i, std::current_exception());
      }
    }
  }

  std::uint64_t done() const {
    if (error_) std::rethrow_exception(error_);
    return std::min<std::uint64_t>(next_, options_.count);
  }

 private:
  void keep(std::uint64_t index, std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (index >= limit_) return;
    limit_ = index;
    error_ = std::move(error);
  }

  const ParallelFor& options_;
  std::atomic<std::uint64_t> limit_;
  const std::function<void(std::uint64_t, int)>& work_;
  std::atomic<std::uint64_t> next_{0};
  std::mutex mutex_;
  std::exception_ptr error_;
};

}  // namespace

std::uint64_t parallel_for(const ParallelFor& options,
                           const std::function<void(std::uint64_t, int)>& work) {
  Job job(options, work);
  const auto useful = std::min<std::uint64_t>(
      options.count, static_cast<std::uint64_t>(std::max(options.threads, 1)));
  {
    std::vector<std::jthread> threads;
    for (int i = 1; i < static_cast<int>(useful); ++i) {
      threads.emplace_back([&job, &options, i] {
        core::name_this_thread(options.thread_name + "-" + std::to_string(i));
        job.run(i);
      });
    }
    job.run(0);
  }
  return job.done();
}

void parallel_tasks(int threads, const std::vector<std::function<void()>>& tasks) {
  parallel_for({.count = tasks.size(), .threads = threads},
               [&](std::uint64_t index, int) { tasks[index](); });
}

}  // namespace sidestream::data
