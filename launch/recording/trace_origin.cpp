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

namespace {

TracePlace place_in(const std::filesystem::path& run_dir, const std::string& window,
                    const std::string& file) {
  for (int number = 1;; ++number) {
    const std::string suffix = number == 1 ? "" : fmt::format("-{}", number);
    const std::filesystem::path folder = run_dir / "trace" / (window + suffix);
    if (!std::filesystem::exists(folder / file)) return {folder, folder / file};
  }
}

std::string file_name(const TraceOrigin& origin, std::int64_t step) {
  return fmt::format("node{}_{:05}.{}.pt.trace.json.gz", origin.node, origin.rank, step);
}

}  // namespace

TracePlace trace_place(const std::filesystem::path& run_dir, const TraceOrigin& origin,
                       std::int64_t step) {
  return place_in(run_dir, fmt::format("step_{:08}", step), file_name(origin, step));
}

TracePlace trace_place(const std::filesystem::path& run_dir, const TraceOrigin& origin,
                       std::int64_t step, int request) {
  return place_in(run_dir, fmt::format("asked_{:04}", request), file_name(origin, step));
}

}  // namespace sidestream::launch
