// Sums over the rows of a gradient that a kernel had at hand anyway, from the operator that made
// the gradient to the one that needs the sums, for a bias: it need not read the gradient for them.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>

#include <torch/types.h>

namespace sidestream::model::device {

// Of the gradient that was offered last: the operator that needs its sums comes next. Several
// threads may call.
class SumsAtHand {
 public:
  // sums [C], of the type of `rows`: over all but the last dimension of `rows` [..., C].
  void offer(const torch::Tensor& rows, torch::Tensor sums);

  // Those of `rows`, or of a view of all of it; undefined where others were offered, or where it
  // has been written since. Nothing is left.
  torch::Tensor take(const torch::Tensor& rows);

 private:
  struct Offer {
    c10::weak_intrusive_ptr<c10::StorageImpl> storage;  // another tensor may come to lie there
    const void* begin;
    std::int64_t elements;
    std::uint32_t version;
    torch::Tensor sums;
  };

  std::mutex mutex_;
  std::optional<Offer> offer_;
};

}  // namespace sidestream::model::device
