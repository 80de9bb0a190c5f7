// How much of its time a process that computes waits for a processor that others have: programs
// beside it, or threads of its own that are more than the processors.
#pragma once

#include <cstdint>
#include <optional>

#include "profiling/record/proc_files.hpp"

namespace sidestream::record {

// Of the threads that wanted a processor for at least a quarter of the time between two readings
// (a barrier has all others wait for the slowest), the largest share of waiting in what each
// wanted, 0 to 1. Nothing where no thread wanted so much, or the kernel keeps no such times.
std::optional<double> processor_wait(const ThreadTable& before, const ThreadTable& after,
                                     std::int64_t elapsed_ns);

// From its construction on.
class ProcessorWait {
 public:
  ProcessorWait();
  std::optional<double> share() const;

 private:
  std::int64_t begin_ns_;
  ThreadTable before_;
};

}  // namespace sidestream::record
