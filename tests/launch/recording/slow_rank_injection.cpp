// The recorder's callbacks with a sleep on one rank, or on every rank (-1):
// SIDESTREAM_TEST_SLEEP=RANK:RANGE:MILLISECONDS.
// A range on a thread is held open so much longer; an operation in flight of bucket 0 begins so
// much later, as if its rank had been late to it.
#define NVTX_NO_IMPL  // only the types
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "profiling/ranges/phases.hpp"
#include "profiling/record/nvtx_callbacks.hpp"
#include "profiling/record/process_recorder.hpp"

namespace sidestream::test {
namespace {

struct Sleep {
  std::string range;
  std::chrono::milliseconds time{0};

  static Sleep of_this_rank() {
    const char* const wish = std::getenv("SIDESTREAM_TEST_SLEEP");
    const char* const rank = std::getenv("OMPI_COMM_WORLD_RANK");
    char range[64] = {};
    int whose = -1, ms = 0;
    if (wish == nullptr || std::sscanf(wish, "%d:%63[^:]:%d", &whose, range, &ms) != 3) return {};
    if (whose >= 0 && whose != (rank == nullptr ? 0 : std::atoi(rank))) return {};
    return {range, std::chrono::milliseconds(ms)};
  }
};

const Sleep& wanted() {
  static const Sleep sleep = Sleep::of_this_rank();
  return sleep;
}

bool is_wanted(const nvtxEventAttributes_t& attributes) {
  const auto name = reinterpret_cast<record::NameId>(attributes.message.registered);
  return wanted().time.count() > 0 &&
         record::process_recorder().names().text(name) == wanted().range;
}

std::int64_t bucket_of(const nvtxEventAttributes_t& attributes) {
  if (attributes.payloadType != NVTX_PAYLOAD_TYPE_EXT) return -1;
  const auto* data = reinterpret_cast<const nvtxPayloadData_t*>(attributes.payload.ullValue);
  return static_cast<const ranges::CollectivePayload*>(data->payload)->bucket;
}

using Push = int (*)(nvtxDomainHandle_t, const nvtxEventAttributes_t*);
using Start = nvtxRangeId_t (*)(nvtxDomainHandle_t, const nvtxEventAttributes_t*);
Push recorder_push = nullptr;
Start recorder_start = nullptr;

int slow_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  const int depth = recorder_push(domain, attributes);
  if (is_wanted(*attributes)) std::this_thread::sleep_for(wanted().time);
  return depth;
}

nvtxRangeId_t slow_start(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* attributes) {
  if (is_wanted(*attributes) && bucket_of(*attributes) == 0)
    std::this_thread::sleep_for(wanted().time);
  return recorder_start(domain, attributes);
}

int initialize(NvtxGetExportTableFunc_t get_export_table) {
  if (record::attach_to_nvtx(get_export_table) == 0) return 0;
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size);
  NvtxFunctionPointer& push = *table[NVTX_CBID_CORE2_DomainRangePushEx];
  NvtxFunctionPointer& start = *table[NVTX_CBID_CORE2_DomainRangeStartEx];
  recorder_push = reinterpret_cast<Push>(push);
  recorder_start = reinterpret_cast<Start>(start);
  push = reinterpret_cast<NvtxFunctionPointer>(slow_push);
  start = reinterpret_cast<NvtxFunctionPointer>(slow_start);
  return 1;
}

}  // namespace
}  // namespace sidestream::test

extern "C" NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr;
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr = sidestream::test::initialize;
