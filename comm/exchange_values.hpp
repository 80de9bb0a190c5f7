// Values of a fixed size over Communicator::exchange.
#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>
#include <vector>

#include "comm/communicator.hpp"

namespace sidestream::comm {

// Throws CollectiveError, which names the rank, where one has sent another number of bytes: it is
// in another exchange.
void require_lengths(const std::vector<std::string>& all, std::size_t bytes,
                     const Purpose& purpose);

// The values of all ranks in rank order. As exchange: every rank calls it; blocks the host, orders
// no stream. Throws CollectiveError, PeerError.
template <typename Value>
std::vector<Value> exchange_values(Communicator& communicator, const Value& mine,
                                   const CollectiveOptions& options) {
  static_assert(std::is_trivially_copyable_v<Value>);
  std::string bytes(sizeof(Value), '\0');
  std::memcpy(bytes.data(), &mine, sizeof(Value));
  const std::vector<std::string> all = communicator.exchange(bytes, options);
  require_lengths(all, sizeof(Value), options.purpose);
  std::vector<Value> values(all.size());
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    std::memcpy(&values[rank], all[rank].data(), sizeof(Value));
  return values;
}

}  // namespace sidestream::comm
