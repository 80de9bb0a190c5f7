#include "launch/doctor/rank_facts.hpp"

#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/json_fault.hpp"

namespace sidestream::comm {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Machine, packages, numa_nodes, cores, processors)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(MpiLibrary, version, standard, built_standard,
                                                cuda_aware)

// Found by their argument, which names of an unnamed namespace are not.
static void to_json(nlohmann::json& json, const DeviceFinding& finding) {
  json = finding.to_text();
}
static void from_json(const nlohmann::json& json, DeviceFinding& finding) {
  finding = DeviceFinding::from_text(json.get<std::string>());
}

}  // namespace sidestream::comm

namespace sidestream::record {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NvLinks, bus_id, switch_bytes_per_s, to)

}  // namespace sidestream::record

namespace sidestream::launch::doctor {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ProgramFacts, version, sha256, built_cuda,
                                                built_torch, torch)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NcclFacts, built, loaded, problem)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ProcessorFacts, name, capability, machine, allowed,
                                                quota, load, governor)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(MemoryFacts, available_bytes, limit_bytes,
                                                limit_used_bytes, shared_free_bytes, huge_pages,
                                                huge_pages_of_files)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LimitFacts, open_files, locked_bytes, file_bytes,
                                                address_bytes, tasks)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(GpuFacts, device, on_bus, driver, held_down, links)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NetworkFacts, fastest, bytes_per_s, remote_memory)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(StorageFacts, probed, folder, answered, filesystem,
                                                sees_first, free_bytes, problem, fsync_s,
                                                bytes_per_s)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RankFacts, host, program, mpi, mpirun, nccl,
                                                processor, clock_source, memory, limits, gpu,
                                                network, storage, memory_bytes_per_s, stop)

std::string RankFacts::to_text() const {
  // A host name or a path may hold bytes that are no UTF-8.
  return nlohmann::json(*this).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

RankFacts RankFacts::from_text(const std::string& text) {
  try {
    return nlohmann::json::parse(text).get<RankFacts>();
  } catch (const nlohmann::json::exception& error) {
    throw core::Error(std::string("a rank said nothing about its machine: ") +
                      core::json_words(error));
  }
}

}  // namespace sidestream::launch::doctor
