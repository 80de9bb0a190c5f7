#include "comm/nccl/windows.hpp"

#include <exception>

namespace sidestream::comm::nccl {

// NCCL writes the window when it is done: the entry has its place before.
void Windows::add(void* memory, std::size_t bytes, const Link::Look& look) {
  const auto entry = by_memory_.insert({memory, nullptr}).first;
  try {
    link_.launch(
        [&](Api& api, Comm comm) {
          return api.register_window(memory, bytes, &entry->second, comm);
        },
        look);
  } catch (const std::exception&) {
    unsettled_.push_back(by_memory_.extract(entry));
    throw;
  }
  if (entry->second == nullptr) by_memory_.erase(entry);
}

void Windows::remove(void* memory) {
  const auto entry = by_memory_.find(memory);
  if (entry == by_memory_.end()) return;
  link_.launch([&](Api& api, Comm comm) { return api.deregister_window(entry->second, comm); });
  by_memory_.erase(entry);
}

void Windows::remove_all() noexcept {
  try {
    while (!by_memory_.empty()) remove(by_memory_.begin()->first);
  } catch (const std::exception&) {  // what is left is the link's
  }
}

}  // namespace sidestream::comm::nccl
