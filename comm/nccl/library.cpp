// Fills the table from libnccl.so.2, opened at run time: a program that trains on the CPU needs no
// NCCL, and one that cannot have it says so in a sentence instead of dying in the loader.
#include <dlfcn.h>
#include <nccl.h>

#include <algorithm>
#include <string>
#include <utility>

#include "comm/nccl/api.hpp"
#include "core/base/error.hpp"

namespace sidestream::comm::nccl {
namespace {

using Status = Result::Status;

// The copy that is in the process already, because LibTorch came with it; else the one that this
// build was made for, before any other that the loader's path may have. Never closed: its threads
// run to the end of the process.
void* open_library() {
  constexpr const char* kName = "libnccl.so.2";
  if (void* library = dlopen(kName, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)) return library;
  std::string problem;
  for (const char* name : {SIDESTREAM_NCCL_PATH, kName}) {
    if (void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return library;
    const char* words = dlerror();
    if (problem.empty() && words != nullptr) problem = words;
  }
  throw core::ConfigError("backend nccl: the NCCL library cannot be loaded: " + problem +
                          ". Install the Python environment with launch/setup, or use --backend "
                          "mpi");
}

ncclDataType_t type_of(core::DType dtype) {
  switch (dtype) {
    case core::DType::kFloat32:
      return ncclFloat32;
    case core::DType::kBFloat16:
      return ncclBfloat16;
    case core::DType::kFloat16:
      return ncclFloat16;
    case core::DType::kInt64:
      return ncclInt64;
    case core::DType::kInt32:
      return ncclInt32;
    case core::DType::kUInt8:
      return ncclUint8;
    case core::DType::kFloat64:
      return ncclFloat64;
    case core::DType::kUInt16:
      break;
  }
  throw core::Error("NCCL does not know elements of type " + std::string(core::name_of(dtype)));
}

// Types that are only carried travel as bytes.
Transfer as_bytes(const Transfer& transfer) {
  return {.from = transfer.from,
          .to = transfer.to,
          .count = transfer.count * core::size_of(transfer.dtype),
          .dtype = core::DType::kUInt8};
}

int policy_of(CtaPolicy policy) {
  switch (policy) {
    case CtaPolicy::kDefault:
      return NCCL_CTA_POLICY_DEFAULT;
    case CtaPolicy::kEfficiency:
      return NCCL_CTA_POLICY_EFFICIENCY;
    case CtaPolicy::kZero:
      return NCCL_CTA_POLICY_ZERO;
  }
  throw core::Error("NCCL has no such CTA policy");
}

// What is not asked for stays undefined in the configuration: then NCCL's environment variables
// count.
void apply(const Tuning& tuning, ncclConfig_t& config) {
  if (tuning.cta_policy != CtaPolicy::kDefault) config.CTAPolicy = policy_of(tuning.cta_policy);
  if (tuning.ctas == 0) return;
  config.minCTAs = tuning.ctas;
  config.maxCTAs = tuning.ctas;
}

class LibraryApi final : public Api {
 public:
  LibraryApi() : library_(open_library()) {
    find(get_version_, "ncclGetVersion");
    find(get_unique_id_, "ncclGetUniqueId");
    find(init_, "ncclCommInitRankConfig");
    find(async_error_, "ncclCommGetAsyncError");
    find(finalize_, "ncclCommFinalize");
    find(destroy_, "ncclCommDestroy");
    find(abort_, "ncclCommAbort");
    find(error_string_, "ncclGetErrorString");
    find(last_error_, "ncclGetLastError");
    find(group_start_, "ncclGroupStart");
    find(group_end_, "ncclGroupEnd");
    find(all_reduce_, "ncclAllReduce");
    find(reduce_scatter_, "ncclReduceScatter");
    find(all_gather_, "ncclAllGather");
    find(broadcast_, "ncclBroadcast");
    find(mem_alloc_, "ncclMemAlloc");
    find(mem_free_, "ncclMemFree");
    find(window_register_, "ncclCommWindowRegister");
    find(window_deregister_, "ncclCommWindowDeregister");
  }

  int built_version() const override { return NCCL_VERSION_CODE; }
  int runtime_version() override {
    int version = 0;
    get_version_(&version);
    return version;
  }

  UniqueId unique_id() override {
    ncclUniqueId raw{};
    const Result result = result_of(get_unique_id_(&raw), nullptr);
    if (result.status == Status::kFailed) {
      throw core::CollectiveError("ncclGetUniqueId: " + result.text);
    }
    UniqueId id;
    std::copy(std::begin(raw.internal), std::end(raw.internal), id.bytes.begin());
    return id;
  }

  Result init(Comm* comm, const UniqueId& id, const InitOptions& options) override {
    ncclUniqueId raw{};
    std::copy(id.bytes.begin(), id.bytes.end(), std::begin(raw.internal));
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    apply(options.tuning, config);
    auto** made = reinterpret_cast<ncclComm_t*>(comm);
    return result_of(init_(made, options.size, raw, options.rank, &config), nullptr);
  }

  Result async_error(Comm comm) override {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = async_error_(raw(comm), &state);
    return result_of(asked == ncclSuccess ? state : asked, comm);
  }

  Result finalize(Comm comm) override { return result_of(finalize_(raw(comm)), comm); }
  void destroy(Comm comm) noexcept override { destroy_(raw(comm)); }
  void abort(Comm comm) noexcept override { abort_(raw(comm)); }

  Result group_start() override { return result_of(group_start_(), nullptr); }
  Result group_end() override { return result_of(group_end_(), nullptr); }

  Result all_reduce(const Transfer& t, Comm comm, Stream stream) override {
    return result_of(all_reduce_(t.from, t.to, t.count, type_of(t.dtype), ncclSum, raw(comm),
                                 raw_stream(stream)),
                     comm);
  }
  Result reduce_scatter(const Transfer& t, Comm comm, Stream stream) override {
    return result_of(reduce_scatter_(t.from, t.to, t.count, type_of(t.dtype), ncclSum, raw(comm),
                                     raw_stream(stream)),
                     comm);
  }
  Result all_gather(const Transfer& transfer, Comm comm, Stream stream) override {
    const Transfer t = as_bytes(transfer);
    return result_of(
        all_gather_(t.from, t.to, t.count, type_of(t.dtype), raw(comm), raw_stream(stream)), comm);
  }
  Result broadcast(const Transfer& transfer, int root, Comm comm, Stream stream) override {
    const Transfer t = as_bytes(transfer);
    return result_of(
        broadcast_(t.from, t.to, t.count, type_of(t.dtype), root, raw(comm), raw_stream(stream)),
        comm);
  }

  void* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    return mem_alloc_(&memory, bytes) == ncclSuccess ? memory : nullptr;
  }
  void free(void* memory) noexcept override { mem_free_(memory); }

  Result register_window(void* memory, std::size_t bytes, Window* window, Comm comm) override {
    auto** made = reinterpret_cast<ncclWindow_t*>(window);
    return result_of(window_register_(raw(comm), memory, bytes, made, NCCL_WIN_COLL_SYMMETRIC),
                     comm);
  }
  Result deregister_window(Window window, Comm comm) override {
    return result_of(window_deregister_(raw(comm), static_cast<ncclWindow_t>(window)), comm);
  }

 private:
  static ncclComm_t raw(Comm comm) { return static_cast<ncclComm_t>(comm); }
  static cudaStream_t raw_stream(Stream stream) { return static_cast<cudaStream_t>(stream); }

  template <typename Function>
  void find(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(library_, name));
    if (function == nullptr) {
      throw core::ConfigError(
          std::string("backend nccl: the NCCL library that was loaded has no ") + name +
          ": this build needs NCCL " + version_text(NCCL_VERSION_CODE));
    }
  }

  Result result_of(ncclResult_t result, Comm comm) const {
    if (result == ncclSuccess) return {};
    if (result == ncclInProgress) return {.status = Status::kInProgress};
    std::string text = error_string_(result);
    const char* details = last_error_(raw(comm));
    if (details != nullptr && *details != '\0') text += std::string(": ") + details;
    return {.status = Status::kFailed, .text = text};
  }

  void* library_;
  decltype(&::ncclGetVersion) get_version_ = nullptr;
  decltype(&::ncclGetUniqueId) get_unique_id_ = nullptr;
  decltype(&::ncclCommInitRankConfig) init_ = nullptr;
  decltype(&::ncclCommGetAsyncError) async_error_ = nullptr;
  decltype(&::ncclCommFinalize) finalize_ = nullptr;
  decltype(&::ncclCommDestroy) destroy_ = nullptr;
  decltype(&::ncclCommAbort) abort_ = nullptr;
  decltype(&::ncclGetErrorString) error_string_ = nullptr;
  decltype(&::ncclGetLastError) last_error_ = nullptr;
  decltype(&::ncclGroupStart) group_start_ = nullptr;
  decltype(&::ncclGroupEnd) group_end_ = nullptr;
  decltype(&::ncclAllReduce) all_reduce_ = nullptr;
  decltype(&::ncclReduceScatter) reduce_scatter_ = nullptr;
  decltype(&::ncclAllGather) all_gather_ = nullptr;
  decltype(&::ncclBroadcast) broadcast_ = nullptr;
  decltype(&::ncclMemAlloc) mem_alloc_ = nullptr;
  decltype(&::ncclMemFree) mem_free_ = nullptr;
  decltype(&::ncclCommWindowRegister) window_register_ = nullptr;
  decltype(&::ncclCommWindowDeregister) window_deregister_ = nullptr;
};

}  // namespace

std::shared_ptr<Api> load_api() { return std::make_shared<LibraryApi>(); }

}  // namespace sidestream::comm::nccl
