#include "launch/process/failure.hpp"

#include <new>

#include <c10/util/Exception.h>

#include "core/base/dead_peer_error.hpp"

namespace sidestream::launch {

using core::ExitCode;

Failure describe_failure(const std::exception& error) {
  if (const auto* own = dynamic_cast<const core::Error*>(&error)) {
    return {.code = own->code(),
            .message = own->what(),
            .peer_is_gone = dynamic_cast<const core::DeadPeerError*>(&error) != nullptr};
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return {ExitCode::kMemory,
            "out of memory: a smaller --batch-size-per-rank or --sequence-length needs less"};
  }
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&error)) {
    const std::string text = torch_error->what_without_backtrace();
    const bool memory = dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
                        text.find("DefaultCPUAllocator: can't allocate") != std::string::npos;
    return {memory ? ExitCode::kMemory : ExitCode::kOther,
            (memory ? "out of memory: " : "") + text};
  }
  return {ExitCode::kOther, error.what()};
}

}  // namespace sidestream::launch
