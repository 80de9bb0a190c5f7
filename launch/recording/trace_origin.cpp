#include "launch/recording/trace_origin.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace sidestream::launch {
namespace {

std::string backend_word(const comm::Communicator& communicator) {
  const std::string_view name = communicator.backend_name();
  return std::string(name.substr(0, name.find('+')));
}

}  // namespace

TraceOrigin TraceOrigin::of(const comm::Communicator& communicator) {
  return {.rank = communicator.rank(),
          .world_size = communicator.size(),
          .node = communicator.topology().node,
          .backend = backend_word(communicator),
          .process_id = ::getpid()};
}

TracePlace trace_place(const std::filesystem::path& run_dir, const TraceOrigin& origin,
                       std::int64_t step) {
  const std::string name =
      fmt::format("node{}_{:05}.{}.pt.trace.json.gz", origin.node, origin.rank, step);
  for (int number = 1;; ++number) {
    const std::string suffix = number == 1 ? "" : fmt::format("-{}", number);
    const std::filesystem::path folder =
        run_dir / "trace" / fmt::format("step_{:08}{}", step, suffix);
    if (!std::filesystem::exists(folder / name)) return {folder, folder / name};
  }
}

}  // namespace sidestream::launch
