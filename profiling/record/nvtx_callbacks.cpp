#define NVTX_NO_IMPL  // only the types
#include "profiling/record/nvtx_callbacks.hpp"

#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <exception>

#include "profiling/record/process_recorder.hpp"

namespace sidestream::record {
namespace {

Recorder& recorder() {
  static Recorder& instance = process_recorder();
  return instance;
}

bool is_ours(nvtxDomainHandle_t domain) { return domain != nullptr; }

NameId name_in(const nvtxEventAttributes_t& attributes) {
  if (attributes.messageType != NVTX_MESSAGE_TYPE_REGISTERED) return kOtherName;
  return reinterpret_cast<NameId>(attributes.message.registered);
}

// The collective that the range carries, or null.
const ranges::CollectivePayload* payload_in(const nvtxEventAttributes_t& attributes) {
  if (attributes.payloadType != NVTX_PAYLOAD_TYPE_EXT) return nullptr;
  const auto* data = reinterpret_cast<const nvtxPayloadData_t*>(attributes.payload.ullValue);
  if (data->schemaId != ranges::kCollectiveSchemaId) return nullptr;
  return static_cast<const ranges::CollectivePayload*>(data->payload);
}

nvtxDomainHandle_t on_domain(const char* name) {
  if (name == nullptr || name != ranges::kDomain) return nullptr;
  return reinterpret_cast<nvtxDomainHandle_t>(&process_recorder());
}

nvtxStringHandle_t on_register(nvtxDomainHandle_t domain, const char* name) {
  if (!is_ours(domain) || name == nullptr) return nullptr;
  try {
    return reinterpret_cast<nvtxStringHandle_t>(recorder().names().intern(name));
  } catch (const std::exception&) {
    return nullptr;  // no memory: the range goes by another name
  }
}

int on_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  if (is_ours(domain)) recorder().push(name_in(*attributes), payload_in(*attributes));
  return 0;
}

int on_pop(nvtxDomainHandle_t domain) {
  if (is_ours(domain)) recorder().pop();
  return 0;
}

nvtxRangeId_t on_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  return is_ours(domain) ? recorder().start(name_in(*attributes), payload_in(*attributes)) : 0;
}

void on_end(nvtxDomainHandle_t domain, nvtxRangeId_t id) {
  if (is_ours(domain)) recorder().end(id);
}

template <typename Function>
void set(NvtxFunctionTable table, int id, Function function) {
  *table[id] = reinterpret_cast<NvtxFunctionPointer>(function);
}

}  // namespace

int attach_to_nvtx(NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks == nullptr ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0 ||
      size <= NVTX_CBID_CORE2_DomainRangeEnd)
    return 0;
  set(table, NVTX_CBID_CORE2_DomainCreateA, on_domain);
  set(table, NVTX_CBID_CORE2_DomainRegisterStringA, on_register);
  set(table, NVTX_CBID_CORE2_DomainRangePushEx, on_push);
  set(table, NVTX_CBID_CORE2_DomainRangePop, on_pop);
  set(table, NVTX_CBID_CORE2_DomainRangeStartEx, on_start);
  set(table, NVTX_CBID_CORE2_DomainRangeEnd, on_end);
  detail::note_attached();
  return 1;
}

}  // namespace sidestream::record
