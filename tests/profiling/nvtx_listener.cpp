#define NVTX_NO_IMPL  // only the types: the program's own copy of NVTX calls us
#include "tests/profiling/nvtx_listener.hpp"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <cstring>
#include <deque>
#include <mutex>
#include <utility>

#include "profiling/ranges/phases.hpp"

namespace sidestream::test {
namespace {

struct Listener {
  std::mutex mutex;
  std::vector<std::string> events;
  std::deque<std::string> names;  // handles are their addresses
  nvtxRangeId_t next_range = 1;

  void add(std::string event) {
    const std::lock_guard lock(mutex);
    events.push_back(std::move(event));
  }
};

Listener& listener() {
  static Listener instance;
  return instance;
}

std::string describe(const nvtxEventAttributes_t& attributes) {
  if (attributes.messageType != NVTX_MESSAGE_TYPE_REGISTERED)
    return "a name that is not registered";
  std::string text = *reinterpret_cast<const std::string*>(attributes.message.registered);
  if (attributes.payloadType != NVTX_PAYLOAD_TYPE_EXT) return text;
  const auto* data = reinterpret_cast<const nvtxPayloadData_t*>(attributes.payload.ullValue);
  if (data->schemaId != ranges::kCollectiveSchemaId) return text + " with an unknown schema";
  ranges::CollectivePayload payload;
  std::memcpy(&payload, data->payload, sizeof(payload));
  return text + " payload " + std::to_string(payload.bucket) + " " +
         std::to_string(payload.sequence) + " " + std::to_string(payload.bytes);
}

nvtxDomainHandle_t on_domain(const char* name) {
  listener().add(std::string("domain ") + name);
  return reinterpret_cast<nvtxDomainHandle_t>(&listener());
}
nvtxStringHandle_t on_register(nvtxDomainHandle_t, const char* name) {
  listener().add(std::string("register ") + name);
  const std::lock_guard lock(listener().mutex);
  return reinterpret_cast<nvtxStringHandle_t>(&listener().names.emplace_back(name));
}
int on_push(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  listener().add("push " + describe(*attributes));
  return 0;
}
int on_pop(nvtxDomainHandle_t) {
  listener().add("pop");
  return 0;
}
nvtxRangeId_t on_start(nvtxDomainHandle_t, const nvtxEventAttributes_t* attributes) {
  listener().add("start " + describe(*attributes));
  return listener().next_range++;
}
void on_end(nvtxDomainHandle_t, nvtxRangeId_t id) { listener().add("end " + std::to_string(id)); }

template <typename Function>
void set(NvtxFunctionTable table, int id, Function function) {
  *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

int initialize(NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0)
    return 0;
  set(table, NVTX_CBID_CORE2_DomainCreateA, on_domain);
  set(table, NVTX_CBID_CORE2_DomainRegisterStringA, on_register);
  set(table, NVTX_CBID_CORE2_DomainRangePushEx, on_push);
  set(table, NVTX_CBID_CORE2_DomainRangePop, on_pop);
  set(table, NVTX_CBID_CORE2_DomainRangeStartEx, on_start);
  set(table, NVTX_CBID_CORE2_DomainRangeEnd, on_end);
  return 1;
}

}  // namespace

std::vector<std::string> take_nvtx_events() {
  const std::lock_guard lock(listener().mutex);
  return std::exchange(listener().events, {});
}

}  // namespace sidestream::test

extern "C" NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr;
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = sidestream::test::initialize;
