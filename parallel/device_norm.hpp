// Norm, clip factor and the search for a norm that is not finite, on the device: a few doubles
// (optim::StepScalars) that updates read there. The bits are those of host ranks. All squares are
// taken in one launch after the last collective: a bucket alone does not fill a device (launch by
// launch they took 2.9 ms of a step with 124M parameters on an H200, where memory would allow
// 0.1).
#pragma once

#include <cstdint>
#include <vector>

#include <torch/types.h>

#include "core/optim/device_kernels.hpp"
#include "parallel/device_tools.hpp"
#include "parallel/gradient_space.hpp"
#include "parallel/parameter_space.hpp"

namespace sidestream::parallel {

class DeviceNorm {
 public:
  // The spaces must outlive this.
  DeviceNorm(const ParameterSpace& parameters, const GradientSpace& gradients,
             const DeviceTools& tools);

  // After GradientSpace::adopt(). Waits for a copy: it is rare.
  void layout_changed();

  // The two below queue work on the current stream and return.
  // Every bucket is summed. Collective where the state is sharded: the squares of other ranks'
  // slices come to this one.
  void measure();
  void settle(const optim::StepRule* rule);  // which lies on the device
  // Of the last settle().
  const torch::Tensor& scalars() const noexcept { return scalars_; }
  std::vector<double> parameter_squares() const;  // waits for the device

  // All pieces of all parameters, or of this rank's slices of them, and the gradients that they lie
  // in. Sharded, DevicePiece::weight is a place in the slices.
  optim::PieceTable all_pieces() const { return table(0, first_piece_.back()); }
  optim::PieceTable pieces_in(std::size_t bucket) const;
  const std::vector<Bucket>& buckets() const { return gradients_.plan().buckets; }
  // The same on the host, made anew.
  std::vector<optim::DevicePiece> list_pieces(const Bucket& bucket) const;
  optim::FlatGradients flat_gradients() const;
  const optim::StepScalars* scalars_on_device() const;

 private:
  void count_blocks();
  optim::PieceTable table(std::size_t first, std::size_t count) const;
  std::vector<optim::DevicePiece> pieces_of(std::size_t parameter) const;

  const ParameterSpace& parameters_;
  const GradientSpace& gradients_;
  DeviceTools tools_;
  std::vector<std::uint32_t> first_block_;  // of each parameter in registration order, and the end
  std::vector<std::size_t> first_piece_;    // of each bucket, and the end
  torch::Tensor first_block_on_device_, pieces_;  // bytes
  torch::Tensor squares_, parameter_squares_, scalars_;
};

}  // namespace sidestream::parallel
