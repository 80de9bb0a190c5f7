// The C++ stack of every operator, which the profiler itself does not take outside of Python: taken
// in a callback of its own and given to the profiler's events afterwards. On each thread both see
// the same operators in the same order.
#pragma once

#include <memory>

#include <ATen/record_function.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include "profiling/torch/kineto_session.hpp"

namespace sidestream::kineto {

class OperatorStacks {
 public:
  OperatorStacks();  // from here on stacks are taken, on every thread
  ~OperatorStacks();
  OperatorStacks(const OperatorStacks&) = delete;
  OperatorStacks& operator=(const OperatorStacks&) = delete;

  void stop();
  // Turns addresses into names (slow) and adds them to the events that they belong to. Operators
  // whose order does not match on both sides stay without.
  void add_to(KinetoNotes& notes, const torch::autograd::profiler::ProfilerResult& result);

 private:
  struct Log;
  std::shared_ptr<Log> log_;
  at::CallbackHandle callback_;
  bool stopped_ = false;
};

}  // namespace sidestream::kineto
