#include "model/device/sums_at_hand.hpp"

#include <utility>

namespace sidestream::model::device {

using torch::Tensor;

void SumsAtHand::offer(const Tensor& rows, Tensor sums) {
  const std::scoped_lock lock(mutex_);
  offer_.emplace(Offer{.storage = rows.storage().getWeakStorageImpl(),
                       .begin = rows.const_data_ptr(),
                       .elements = rows.numel(),
                       .version = static_cast<std::uint32_t>(rows._version()),
                       .sums = std::move(sums)});
}

Tensor SumsAtHand::take(const Tensor& rows) {
  const std::scoped_lock lock(mutex_);
  const std::optional<Offer> offer = std::exchange(offer_, std::nullopt);
  const bool is_it = offer &&
                     offer->storage.lock().get() == rows.storage().unsafeGetStorageImpl() &&
                     offer->begin == rows.const_data_ptr() && offer->elements == rows.numel() &&
                     offer->version == static_cast<std::uint32_t>(rows._version()) &&
                     offer->sums.numel() == rows.size(-1);
  return is_it ? offer->sums : Tensor();
}

}  // namespace sidestream::model::device
