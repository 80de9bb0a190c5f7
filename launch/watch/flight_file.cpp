#include "launch/watch/flight_file.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"
#include "core/base/file.hpp"
#include "core/base/warning.hpp"
#include "profiling/record/clock.hpp"

namespace sidestream::launch {
namespace {

using Json = nlohmann::ordered_json;

// What a rank has met is told after this, also where a dead file system is what it has met. A peer
// waits longer than that for a failing one to speak.
constexpr std::chrono::milliseconds kLongestWrite{3000};

Json seconds_before(std::int64_t now_ns, std::int64_t then_ns) {
  return then_ns == 0 ? Json(nullptr) : Json(static_cast<double>(now_ns - then_ns) * 1e-9);
}

Json json_of(const comm::Flight& flight, std::int64_t now_ns) {
  return {{"plane", comm::name_of(flight.plane)},
          {"sequence", flight.call.sequence},
          {"operation", flight.call.name()},
          {"bucket", flight.call.bucket},
          {"bytes", flight.call.bytes},
          {"state", comm::name_of(flight.state)},
          {"queued_s_ago", seconds_before(now_ns, flight.queued_ns)},
          {"started_s_ago", seconds_before(now_ns, flight.started_ns)},
          {"ended_s_ago", seconds_before(now_ns, flight.finished_ns)}};
}

Json json_of(const ThreadStack& stack) {
  Json thread = {{"id", stack.id}, {"name", stack.name}, {"calls", stack.calls}};
  if (!stack.state.empty()) thread["state"] = stack.state;
  return thread;
}

// It may be written before the run directory has been looked at, and must stay in it.
void write_into(const std::filesystem::path& folder, const std::string& name,
                const std::string& text) {
  for (const std::filesystem::path& one : {folder.parent_path(), folder}) {
    if (std::filesystem::is_symlink(one))
      throw core::ConfigError(one.string() + " is a link, which a run does not follow");
  }
  std::filesystem::create_directories(folder);
  core::write_file_atomically(folder / name, text);
}

std::string unwritten(const std::string& why) {
  return "what this rank was doing could not be written: " + why;
}

}  // namespace

std::string FlightFile::text(const std::string& why) const {
  const std::int64_t now_ns = record::monotonic_ns();
  const Heartbeat::Beat beat = heartbeat_.last();
  Json file = {
      {"schema", 1},
      {"rank", rank_},
      {"why", why},
      {"written_at", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))},
      {"step", beat.step},
      {"phase", ranges::name_of(beat.phase)},
      {"collectives", Json::array()},
      {"threads", Json::array()}};
  for (const comm::Flight& flight : flights_.flights())
    file["collectives"].push_back(json_of(flight, now_ns));
  for (const ThreadStack& stack : stacks_.take()) file["threads"].push_back(json_of(stack));
  return file.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// RUN/flight/FOLDER
std::string FlightFile::whereabouts() const {
  const std::string where =
      fmt::format("what each rank was doing (its last collectives, the stacks of its threads): {}",
                  (folder_ / "rank_*.json").string());
  if (of_ == Of::kProgram) return where;
  const std::filesystem::path run_dir = folder_.parent_path().parent_path();
  return fmt::format(
      "{}; of a run with --record on, `sidestream-trace report {}` says who waited for whom", where,
      run_dir.string());
}

FlightFile::Outcome FlightFile::write(const std::string& why) noexcept {
  try {
    const std::unique_lock lock(mutex_, kLongestWrite);
    if (!lock.owns_lock())
      return {.line = unwritten(folder_.string() + ": an earlier request is still being written")};
    if (writing_.done()) {  // else it was left behind, and may still have the file
      writing_.start([folder = folder_, name = fmt::format("rank_{:05}.json", rank_),
                      content = text(why)] { write_into(folder, name, content); });
    }
    if (writing_.finish_within(kLongestWrite)) return {.written = true, .line = whereabouts()};
    return {.line = unwritten(fmt::format("{}: not finished after {} ms, its file system hangs",
                                          folder_.string(), kLongestWrite.count()))};
  } catch (const std::exception& error) {
    return {.line = unwritten(error.what())};
  }
}

void FlightFile::answer_request() noexcept {
  const Outcome outcome = write("asked to");
  if (!outcome.written) core::print_warning(outcome.line);
}

}  // namespace sidestream::launch
