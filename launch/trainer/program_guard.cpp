#include "launch/trainer/program_guard.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <string>

namespace sidestream::launch {
namespace {

constexpr const char* kMoreTime = "A larger limit of ProgramGuard";
constexpr RankGuard::Words kWords{
    .of = FlightFile::Of::kProgram,
    .more_time = {
        .setup = kMoreTime, .step = kMoreTime, .save = kMoreTime, .evaluation = kMoreTime}};

// Each start has its own, the same on all ranks.
std::filesystem::path flight_folder(Session& session, const std::filesystem::path& folder) {
  const std::string mine =
      fmt::format("from_{:%Y-%m-%dT%H-%M-%SZ}", fmt::gmtime(std::time(nullptr)));
  return folder / "flight" / session.communicator().exchange(mine, {.purpose = "starts"}).front();
}

Timeouts all_of(std::chrono::milliseconds limit) {
  return {.setup = limit, .step = limit, .checkpoint = limit, .evaluation = limit};
}

}  // namespace

ProgramGuard::ProgramGuard(Session& session, const std::filesystem::path& folder,
                           std::chrono::milliseconds limit)
    : heartbeat_(std::make_shared<Heartbeat>(session.communicator())),
      guard_(session, all_of(limit), *heartbeat_, flight_folder(session, folder), kWords),
      requests_(session.dump_request(), "ss-records",
                [this] { guard_.flight().answer_request(); }) {}

}  // namespace sidestream::launch
