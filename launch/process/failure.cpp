#include "launch/process/failure.hpp"

#include <filesystem>
#include <new>

#include <c10/util/Exception.h>

#include "core/base/dead_peer_error.hpp"
#include "core/base/file.hpp"

namespace sidestream::launch {

using core::ExitCode;

namespace {

constexpr const char* kOutOfMemory =
    "out of memory: a smaller --batch-size-per-rank or --sequence-length needs less, --zero 1 less "
    "than --zero 0 where there are several ranks; --recompute keeps less for backward, "
    "--optimizer-state-dtype bf16 less state, on a GPU --offload residuals,optimizer leaves both "
    "to the host";

bool is_out_of_memory(const c10::Error& error, const std::string& text) {
  return dynamic_cast<const c10::OutOfMemoryError*>(&error) != nullptr ||
         text.find("DefaultCPUAllocator: can't allocate") != std::string::npos;
}

}  // namespace

Failure describe_failure(const std::exception& error) {
  if (const auto* own = dynamic_cast<const core::Error*>(&error)) {
    return {.code = own->code(),
            .message = own->what(),
            .peer_is_gone = dynamic_cast<const core::DeadPeerError*>(&error) != nullptr};
  }
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return {ExitCode::kMemory, kOutOfMemory};
  }
  if (const auto* torch_error = dynamic_cast<const c10::Error*>(&error)) {
    const std::string text = torch_error->what_without_backtrace();
    if (!is_out_of_memory(*torch_error, text)) return {ExitCode::kOther, text};
    return {ExitCode::kMemory, std::string(kOutOfMemory) + ". LibTorch: " + text};
  }
  if (const auto* of_files = dynamic_cast<const std::filesystem::filesystem_error*>(&error))
    return {ExitCode::kOther, core::filesystem_words(*of_files)};
  return {ExitCode::kOther, error.what()};
}

}  // namespace sidestream::launch
