#include "comm/life_line_setup.hpp"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "comm/mpi_check.hpp"

namespace sidestream::comm {
namespace {

constexpr std::chrono::seconds kPatience{2};
constexpr std::chrono::microseconds kBetweenLooks{200};

bool calls_the_first(const Topology& topology, Boards boards) {
  if (topology.rank == 0) return false;
  return boards == Boards::kNone || (topology.node != 0 && topology.local_rank == 0);
}

// Takes calls until every rank has called or given up.
void take_calls(MPI_Comm job, LifeLineListener* listener, LifeLines& lines) {
  MPI_Request everybody = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(job, &everybody), "MPI_Ibarrier of life lines");
  int done = 0;
  while (done == 0) {
    check_mpi(MPI_Test(&everybody, &done, MPI_STATUS_IGNORE), "MPI_Ibarrier of life lines");
    while (listener != nullptr) {
      std::optional<LifeLineListener::Caller> caller = listener->accept();
      if (!caller) break;
      lines.add(caller->rank, std::move(caller->line));
    }
    if (done == 0) std::this_thread::sleep_for(kBetweenLooks);
  }
}

}  // namespace

std::unique_ptr<LifeLines> connect_life_lines(MPI_Comm job, const Topology& topology,
                                              Boards boards) {
  if (topology.size == 1 || (boards == Boards::kOnEveryNode && topology.node_count == 1))
    return nullptr;
  auto lines = std::make_unique<LifeLines>();
  std::optional<LifeLineListener> listener;
  LifeLineAddress address;
  if (topology.rank == 0) address = listener.emplace().address();
  check_mpi(MPI_Bcast(&address, sizeof(address), MPI_BYTE, 0, job), "MPI_Bcast of life lines");
  if (calls_the_first(topology, boards))
    lines->add(0, call_life_line(address, topology.rank, kPatience));
  take_calls(job, listener ? &*listener : nullptr, *lines);
  return lines;
}

}  // namespace sidestream::comm
