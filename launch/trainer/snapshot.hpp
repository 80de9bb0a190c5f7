// Tensors in host memory that training does not touch while they are written. Mostly copies, in
// memory that is used again for the next ones: fresh memory would have to be faulted in, page by
// page, while training waits.
#pragma once

#include <cstdint>
#include <vector>

#include "launch/trainer/checkpoint_tensors.hpp"

namespace sidestream::launch {

class Snapshot {
 public:
  // Makes the memory for copies of these and touches every page of it, so that the first take() is
  // as fast as the later ones. Tensors without memory may be given: of meta devices, for what is
  // gathered into tensors(). Any thread. Throws std::bad_alloc.
  void reserve(const std::vector<NamedTensor>& tensors);

  // Copies, with all threads of this rank. Throws std::bad_alloc.
  void take(const std::vector<NamedTensor>& tensors);

  // Without a copy of what is in host memory already: nobody may change it until it is written.
  // What copies had taken is given back.
  void borrow(const std::vector<NamedTensor>& tensors);

  // Nothing bad gets into a checkpoint, whatever the losses were: throws NumericsError naming the
  // first tensor with a value that is not finite. Any thread.
  void require_finite(std::int64_t step) const;

  // For tensors in which an infinity may be meant, such as a mask that is added: throws
  // NumericsError naming the first one with a value that is not a number. Any thread.
  void require_no_nan(std::int64_t step) const;

  // Of the last take(), borrow() or reserve(); not to be written but for what is gathered.
  const std::vector<NamedTensor>& tensors() const noexcept { return tensors_; }

 private:
  void make_places(std::size_t count);
  // True where it had to be made.
  bool make_room(std::size_t place, const NamedTensor& wanted);

  std::vector<NamedTensor> tensors_;
  bool borrowed_ = false;
};

}  // namespace sidestream::launch
