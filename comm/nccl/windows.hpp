// Device memory that NCCL has registered with the peers (ncclCommWindowRegister).
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "comm/nccl/api.hpp"
#include "comm/nccl/link.hpp"

namespace sidestream::comm::nccl {

class Windows {
 public:
  explicit Windows(Link& link) : link_(link) {}

  // Collective: memory of Api::allocate(), of the same size on all ranks. Devices that cannot give
  // no window, and collectives take the ways that need none. `look` as in Link::launch(). Throws
  // CollectiveError.
  void add(void* memory, std::size_t bytes, const Link::Look& look);

  // Before the memory ends, which nothing on the device uses any more; without a window it does
  // nothing. NCCL does it on this rank alone, but finds a place for the next window by what each
  // rank still has: between two calls of add() all ranks remove the same. Throws CollectiveError.
  void remove(void* memory);

  // Before the end of the link, which frees what this could not.
  void remove_all() noexcept;

  bool empty() const noexcept { return by_memory_.empty(); }

 private:
  Link& link_;
  std::map<void*, Window> by_memory_;
  // Of calls that ended in an error: NCCL may be at it until the link is gone.
  std::vector<std::map<void*, Window>::node_type> unsettled_;
};

}  // namespace sidestream::comm::nccl
