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
    *job.scalars = optim::settle(*job.scalars, sum, job.rule);
  }

  void adamw(const AdamWJob& job, DeviceStream stream) override {
    on_launch("adamw", stream);
    update(job, [&](const DevicePiece& piece, std::size_t i, float gradient, const auto& c) {
      const std::size_t place = piece.weight + i;
      const AdamWElement now = adamw_element(
          {job.weights[place], job.first_moments[place], job.second_moments[place]}, gradient, c);
      job.first_moments[place] = now.first_moment;
      job.second_moments[place] = now.second_moment;
      return now.weight;
    });
  }

  void sgd(const SgdJob& job, DeviceStream stream) override {
    on_launch("sgd", stream);
    update(job, [&](const DevicePiece& piece, std::size_t i, float gradient, const auto& c) {
      const std::size_t place = piece.weight + i;
      const float momentum = job.momentum == nullptr ? 0 : job.momentum[place];
      const SgdElement now = sgd_element({job.weights[place], momentum}, gradient, c);
      if (job.momentum != nullptr) job.momentum[place] = now.momentum;
      return now.weight;
    });
  }

 private:
  template <typename Work>
  static void with(const FlatGradients& gradients, const Work& work) {
    if (gradients.dtype == core::DType::kFloat32) {
      work(static_cast<const float*>(gradients.data));
    } else {
      work(static_cast<const core::BFloat16*>(gradients.data));
    }
  }

  template <typename Job, typename Element>
  static void update(const Job& job, const Element& element) {
    if (job.scalars->first_bad_step != 0) return;
    const auto scale = static_cast<float>(job.scalars->gradient_scale);
    for (std::size_t p = 0; p < job.table.count; ++p) {
      const DevicePiece& piece = job.table.pieces[p];
      const auto& c = piece.decays != 0 ? job.with_decay : job.without_decay;
      with(job.gradients, [&](const auto* gradients) {
        for (std::size_t i = 0; i < piece.count; ++i) {
          const float gradient = static_cast<float>(gradients[piece.gradient + i]) * scale;
          const float now = element(piece, i, gradient, c);
          job.weights[piece.weight + i] = now;
          if (job.low_precision != nullptr) {
            job.low_precision[piece.low + i] = core::BFloat16(now);
          }
        }
      });
    }
  }
};

}  // namespace sidestream::optim
