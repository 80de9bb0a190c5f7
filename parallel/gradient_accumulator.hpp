// Brings the gradients that autograd makes into the flat buffer, over the micro-steps of a step.
//
// A parameter has no gradient when a step begins, so autograd hands over its own tensor without
// adding or zeroing anything; it is copied into the flat buffer once. Later micro-steps add to
// that. A caller who writes a gradient himself may borrow its place in the buffer, which saves that
// copy. Micro-steps are added in the wider of parameter dtype and that of the flat buffer
// (DataParallelConfig::gradient_dtype(): fp32 where many are added): in the flat buffer where that
// is the wider, else in autograd's own tensor, which is rounded into the buffer once, in the last
// micro-step.
#pragma once

#include <cstddef>
#include <vector>

#include "parallel/gradient_space.hpp"
#include "parallel/parameter_space.hpp"

namespace sidestream::parallel {

enum class MicroStep { kMoreFollow, kLast };

class GradientAccumulator {
 public:
  GradientAccumulator(const ParameterSpace& parameters, const GradientSpace& gradients)
      : parameters_(parameters),
        gradients_(gradients),
        filled_(parameters.size(), false),
        times_asked_(parameters.size(), 0),
        sums_(parameters.size()) {}
  ~GradientAccumulator() { begin_step(); }  // no parameter keeps a view of memory that is not ours
  GradientAccumulator(const GradientAccumulator&) = delete;
  GradientAccumulator& operator=(const GradientAccumulator&) = delete;

  // The place of a parameter's first gradient in this step, once; what is then handed to autograd
  // as the gradient is not copied. Undefined where there is one already, where somebody else has
  // borrowed it, and where the buffer has another dtype.
  torch::Tensor lend(std::size_t parameter);

  // Inside backward, instead of take(): the parameter's gradient lies complete in its place, and
  // autograd will not bring it. False, and nothing is changed, where the place was not lent or
  // asked for again: autograd has gradients to add then.
  bool take_lent(std::size_t parameter);

  // After take_lent(), when autograd is done with the parameter. Throws Error where it has added
  // the gradient of another use, which may have come too late for the sum.
  void require_single_use(std::size_t parameter) const;

  // Every parameter is without a gradient.
  void begin_step();

  // Inside backward, once a parameter and micro-step; one without a gradient counts as zero, for
  // operators may bring none (an undefined tensor). Throws Error for a sparse gradient, and where
  // autograd has not added to that of the micro-steps before: somebody has taken it away or written
  // into it (zero_grad()), or backward made another tensor of the sum (create_graph).
  void take(std::size_t parameter, MicroStep micro_step);

  // For one that the last micro-step did not reach. Where no other did, it counts as zero. Throws
  // as take().
  void fill_if_missing(std::size_t parameter);

 private:
  bool adds_before_rounding() const;
  void hold_sum(std::size_t parameter, const torch::Tensor& sum);
  void require_sum(std::size_t parameter, std::int64_t most_additions);
  void take_unrounded(std::size_t parameter, MicroStep micro_step);
  void round_into_view(std::size_t parameter);

  const ParameterSpace& parameters_;
  const GradientSpace& gradients_;
  std::vector<bool> filled_;      // in this step
  std::vector<int> times_asked_;  // for its place, since it had no gradient

  // What autograd adds to: a tensor of its own over the flat buffer, or over what autograd has made
  // where that is wider. Held, so that no other one can have its address.
  struct Sum {
    torch::Tensor tensor;
    std::int64_t version = 0;  // counts what is written through it
  };
  std::vector<Sum> sums_;
};

}  // namespace sidestream::parallel
