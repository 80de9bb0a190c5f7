// The part of NCCL that Sidestream uses, as a table that a test can replace. No type of nccl.h is
// seen outside of the one file that fills the table from the library.
//
// Communicators are non-blocking: a call may say kInProgress, and is finished when async_error says
// something else. Sums are plain sums: the average is taken once, in the optimizer's pass, and only
// plain sums can use NCCL's symmetric kernels.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "comm/nccl/tuning.hpp"
#include "comm/work.hpp"
#include "core/base/dtype.hpp"

namespace sidestream::comm::nccl {

using Comm = void*;    // ncclComm_t
using Window = void*;  // ncclWindow_t; null: none

struct UniqueId {
  std::array<char, 128> bytes{};
};

struct Result {
  enum class Status { kDone, kInProgress, kFailed };
  Status status = Status::kDone;
  std::string text = {};  // of a failure: NCCL's own words
};

struct InitOptions {
  int rank = 0;
  int size = 1;
  Tuning tuning = {};
};

struct Transfer {
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t count = 0;  // elements: of the buffer, or of one rank's slice
  core::DType dtype = core::DType::kFloat32;
};

class Api {
 public:
  virtual ~Api() = default;
  Api(const Api&) = delete;
  Api& operator=(const Api&) = delete;

  virtual int built_version() const = 0;  // as NCCL_VERSION_CODE: 22809 is 2.28.9
  virtual int runtime_version() = 0;

  virtual UniqueId unique_id() = 0;  // throws core::CollectiveError
  virtual Result init(Comm* comm, const UniqueId& id, const InitOptions& options) = 0;
  virtual Result async_error(Comm comm) = 0;
  virtual Result finalize(Comm comm) = 0;  // flushes; then destroy
  virtual void destroy(Comm comm) noexcept = 0;
  // Stops what is on the device; frees the communicator.
  virtual void abort(Comm comm) noexcept = 0;

  virtual Result group_start() = 0;
  virtual Result group_end() = 0;
  virtual Result all_reduce(const Transfer& transfer, Comm comm, Stream stream) = 0;
  virtual Result reduce_scatter(const Transfer& transfer, Comm comm, Stream stream) = 0;
  virtual Result all_gather(const Transfer& transfer, Comm comm, Stream stream) = 0;
  virtual Result broadcast(const Transfer& transfer, int root, Comm comm, Stream stream) = 0;

  // Device memory that NCCL can register with its peers. Null when there is none.
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* memory) noexcept = 0;

  // Collective: memory of allocate(), of the same size on all ranks, at the same place for NCCL's
  // symmetric kernels. `window` is null afterwards where the devices cannot.
  virtual Result register_window(void* memory, std::size_t bytes, Window* window, Comm comm) = 0;
  // On this rank alone (NCCL's documentation), when nothing on the device uses it any more.
  virtual Result deregister_window(Window window, Comm comm) = 0;

 protected:
  Api() = default;
};

// "2.28.9".
std::string version_text(int version);

// Loads libnccl.so.2, the copy that LibTorch uses when that is in the process. Throws ConfigError
// with the loader's words when it cannot, or when this build has no NCCL.
std::shared_ptr<Api> load_api();

}  // namespace sidestream::comm::nccl
