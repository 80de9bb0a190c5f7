#include "comm/exchange_values.hpp"

#include "core/base/error.hpp"

namespace sidestream::comm {

void require_lengths(const std::vector<std::string>& all, std::size_t bytes,
                     const Purpose& purpose) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].size() == bytes) continue;
    throw core::CollectiveError("exchange of " + std::string(purpose.text()) + ": rank " +
                                std::to_string(rank) + " sent " + std::to_string(all[rank].size()) +
                                " bytes, expected " + std::to_string(bytes) +
                                ": it is in another collective; --check-collectives names it");
  }
}

}  // namespace sidestream::comm
