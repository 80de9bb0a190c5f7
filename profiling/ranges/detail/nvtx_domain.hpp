// The calls into NVTX, and their empty twins for a build without it: the one place that knows the
// difference. Domain, names and schema are registered once a process, at first use; NVTX keeps them
// until the process ends.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "profiling/ranges/phases.hpp"

#if defined(SIDESTREAM_HAVE_NVTX)
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtPayload.h>
#endif

namespace sidestream::ranges::detail {

#if defined(SIDESTREAM_HAVE_NVTX)

using NameHandle = nvtxStringHandle_t;

struct Label {
  NameHandle name;
  std::uint32_t argb;
  Category category;
};

inline void register_collective_schema(nvtxDomainHandle_t domain) {
  std::array<nvtxPayloadSchemaEntry_t, 3> entries{};
  const std::array<const char*, 3> names = {"bucket", "sequence", "bytes"};
  for (std::size_t i = 0; i < entries.size(); ++i) {
    entries[i].type = NVTX_PAYLOAD_ENTRY_TYPE_INT64;
    entries[i].name = names[i];
    entries[i].offset = i * sizeof(std::int64_t);
  }
  nvtxPayloadSchemaAttr_t schema{};
  schema.fieldMask =
      NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NAME | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
      NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES |
      NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_STATIC_SIZE | NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_SCHEMA_ID;
  schema.name = kCollectiveSchemaName;
  schema.type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC;
  schema.entries = entries.data();
  schema.numEntries = entries.size();
  schema.payloadStaticSize = sizeof(CollectivePayload);
  schema.schemaId = kCollectiveSchemaId;
  nvtxPayloadSchemaRegister(domain, &schema);
}

struct Domain {
  nvtxDomainHandle_t handle = nvtxDomainCreateA(kDomain.data());
  std::array<NameHandle, kPhaseCount> names{};

  Domain() {
    for (std::size_t i = 0; i < kPhaseCount; ++i)
      names[i] = nvtxDomainRegisterStringA(handle, kPhases[i].name);
    for (const CategoryName& entry : kCategories) {
      nvtxDomainNameCategoryA(handle, static_cast<std::uint32_t>(entry.category), entry.name);
    }
    register_collective_schema(handle);
  }
};

inline const Domain& domain() {
  static const Domain registered;
  return registered;
}

inline NameHandle register_name(const char* name) {
  return nvtxDomainRegisterStringA(domain().handle, name);
}

inline Label label_of(Phase phase) {
  const PhaseInfo& info = info_of(phase);
  return {domain().names[static_cast<std::size_t>(phase)], info.argb, info.category};
}

// An event's attributes point at the payload's description: both live as long as the call.
struct Event {
  nvtxEventAttributes_t attributes{};
  nvtxPayloadData_t data{};

  Event(const Label& label, const CollectivePayload* payload) {
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.category = static_cast<std::uint32_t>(label.category);
    attributes.colorType = NVTX_COLOR_ARGB;
    attributes.color = label.argb;
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = label.name;
    if (payload != nullptr) {
      NVTX_PAYLOAD_EVTATTR_SET_DATA(attributes, &data, kCollectiveSchemaId, payload,
                                    sizeof(*payload));
    }
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
};

inline void push(const Label& label, const CollectivePayload* payload) noexcept {
  const Event event(label, payload);
  nvtxDomainRangePushEx(domain().handle, &event.attributes);
}
inline void pop() noexcept { nvtxDomainRangePop(domain().handle); }

inline std::uint64_t start(const Label& label, const CollectivePayload* payload) noexcept {
  const Event event(label, payload);
  return nvtxDomainRangeStartEx(domain().handle, &event.attributes);
}
inline void stop(std::uint64_t id) noexcept { nvtxDomainRangeEnd(domain().handle, id); }

#else

struct NameHandle {};

struct Label {
  NameHandle name;
  std::uint32_t argb;
  Category category;
};

inline NameHandle register_name(const char*) { return {}; }
inline Label label_of(Phase phase) { return {{}, info_of(phase).argb, info_of(phase).category}; }
inline void push(const Label&, const CollectivePayload*) noexcept {}
inline void pop() noexcept {}
inline std::uint64_t start(const Label&, const CollectivePayload*) noexcept { return 0; }
inline void stop(std::uint64_t) noexcept {}

#endif

}  // namespace sidestream::ranges::detail
