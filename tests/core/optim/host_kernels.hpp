// DeviceKernels as plain loops over host memory: what a GPU would do, for tests of everything
// around the kernels, and the reference for the kernels themselves.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "core/optim/device_kernels.hpp"

namespace sidestream::optim {

class HostKernels final : public DeviceKernels {
 public:
  // Called with the name of each launch and its stream.
  std::function<void(const std::string& name, DeviceStream stream)> on_launch =
      [](const std::string&, DeviceStream) {};

  void squares(const SquaresJob& job, DeviceStream stream) override {
    on_launch("squares", stream);
    for (std::size_t i = 0; i < job.table.count; ++i) {
      const DevicePiece& piece = job.table.pieces[i];
      with(job.gradients, [&](const auto* gradients) {
        job.squares[piece.block] =
            sum_of_squares(std::span(gradients + piece.gradient, piece.count));
      });
    }
  }

  void settle(const SettleJob& job, DeviceStream stream) override {
    on_launch("settle", stream);
    double sum = 0;
    for (std::size_t p = 0; p < job.parameters; ++p) {
      const auto count = job.first_block[p + 1] - job.first_block[p];
      job.parameter_squares[p] = add_in_order({job.squares + job.first_block[p], count});
      sum += job.parameter_squares[p];
    }
    *job.scalars = optim::settle(*job.scalars, sum, job.rule->clip);
  }

  void set_rule(const StepRule& rule, StepRule* to, DeviceStream stream) override {
    on_launch("set_rule", stream);
    *to = rule;
  }

  void adamw(const AdamWJob& job, DeviceStream stream) override {
    on_launch("adamw", stream);
    update(job, [&](const DevicePiece& piece, std::size_t i, float gradient, const auto& c) {
      const std::size_t at = piece.weight + i;
      const Kept first = kept(job, job.first_moments, at),
                 second = kept(job, job.second_moments, at);
      const AdamWElement now =
          adamw_element({job.weights[at], first.value(), second.value()}, gradient, c);
      const std::uint32_t draw = draw_of(job, piece, i);
      first.keep(now.first_moment, draw, RoundingHalf::kFirstMoment);
      second.keep(now.second_moment, draw, RoundingHalf::kSecondMoment);
      return now.weight;
    });
  }

  void sgd(const SgdJob& job, DeviceStream stream) override {
    on_launch("sgd", stream);
    update(job, [&](const DevicePiece& piece, std::size_t i, float gradient, const auto& c) {
      const std::size_t at = piece.weight + i;
      const Kept momentum = kept(job, job.momentum, at);
      const float before = job.momentum == nullptr ? 0 : momentum.value();
      const SgdElement now = sgd_element({job.weights[at], before}, gradient, c);
      if (job.momentum != nullptr)
        momentum.keep(now.momentum, draw_of(job, piece, i), RoundingHalf::kFirstMoment);
      return now.weight;
    });
  }

  void round(const RoundingJob& job, DeviceStream stream) override {
    on_launch("round", stream);
    for (std::size_t i = 0; i < job.count; ++i) {
      const std::uint32_t draw = rounding_draw(job.place, static_cast<std::uint32_t>(i));
      job.to[i] = round_stochastically(job.from[i], half_of(draw, job.half));
    }
  }

 private:
  // One element of a moment, of either type.
  struct Kept {
    float* wide;
    core::BFloat16* narrow;

    float value() const { return wide != nullptr ? *wide : static_cast<float>(*narrow); }
    void keep(float value, std::uint32_t draw, RoundingHalf half) const {
      if (wide != nullptr) {
        *wide = value;
      } else {
        *narrow = round_stochastically(value, half_of(draw, half));
      }
    }
  };

  template <typename Job>
  static Kept kept(const Job& job, void* moments, std::size_t at) {
    if (job.moment_dtype == core::DType::kFloat32)
      return {static_cast<float*>(moments) + at, nullptr};
    return {nullptr, static_cast<core::BFloat16*>(moments) + at};
  }

  template <typename Job>
  static std::uint32_t draw_of(const Job& job, const DevicePiece& piece, std::size_t i) {
    return rounding_draw(rounding_place(job.rule->rounding, piece.parameter, piece.first),
                         static_cast<std::uint32_t>(i));
  }

  template <typename Work>
  static void with(const FlatGradients& gradients, const Work& work) {
    if (gradients.dtype == core::DType::kFloat32) {
      work(static_cast<const float*>(gradients.data));
    } else if (gradients.dtype == core::DType::kFloat16) {
      work(static_cast<const core::Float16*>(gradients.data));
    } else {
      work(static_cast<const core::BFloat16*>(gradients.data));
    }
  }

  static void keep_copy(const LowCopy& copy, std::size_t at, float value) {
    if (copy.data == nullptr) return;
    if (copy.dtype == core::DType::kFloat16) {
      static_cast<core::Float16*>(copy.data)[at] = core::Float16(value);
    } else {
      static_cast<core::BFloat16*>(copy.data)[at] = core::BFloat16(value);
    }
  }

  template <typename Job, typename Element>
  static void update(const Job& job, const Element& element) {
    if (!has_update(*job.scalars)) return;
    const auto scale = static_cast<float>(job.scalars->gradient_scale);
    for (std::size_t p = 0; p < job.table.count; ++p) {
      const DevicePiece& piece = job.table.pieces[p];
      const auto c = of_step(coefficients_of(job, piece), *job.scalars);
      with(job.gradients, [&](const auto* gradients) {
        for (std::size_t i = 0; i < piece.count; ++i) {
          const float gradient = static_cast<float>(gradients[piece.gradient + i]) * scale;
          const float now = element(piece, i, gradient, c);
          job.weights[piece.weight + i] = now;
          keep_copy(job.low_precision, piece.low + i, now);
        }
      });
    }
  }
};

}  // namespace sidestream::optim
