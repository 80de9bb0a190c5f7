// A program of one's own whose ranks do not end alike. endings_test.cpp starts it under mpirun.
//
//   ending_program <scenario> [folder]
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <thread>

#include "launch/process/program.hpp"
#include "launch/trainer/program_guard.hpp"

namespace {

using sidestream::core::DType;
using sidestream::core::ExitCode;
namespace launch = sidestream::launch;

void add_up(launch::Session& session) {
  std::array<float, 4> values{};
  session.communicator().all_reduce(values.data(), values.size(), DType::kFloat32).wait();
}

// Whether this rank's records come within ten seconds.
bool are_there(const launch::Session& session, const std::filesystem::path& folder) {
  const std::string name = "rank_0000" + std::to_string(session.communicator().rank()) + ".json";
  for (int look = 0; look < 1000; ++look) {
    std::error_code ignored;
    std::filesystem::recursive_directory_iterator entry(folder, ignored);
    for (; entry != std::filesystem::recursive_directory_iterator(); entry.increment(ignored))
      if (entry->path().filename() == name) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

ExitCode run_guarded(launch::Session& session, const std::string& scenario,
                     const std::filesystem::path& folder) {
  launch::ProgramGuard guard(session, folder, std::chrono::milliseconds(500));
  guard.beat(2);
  add_up(session);
  if (scenario == "asked") {
    guard.rest();
    std::raise(SIGUSR2);
    if (!are_there(session, folder)) return ExitCode::kOther;
  }
  guard.beat(3);
  if (scenario == "hangs" && session.communicator().rank() == 1)
    std::this_thread::sleep_for(std::chrono::hours(1));
  add_up(session);
  return ExitCode::kDone;
}

ExitCode run(launch::Session& session, const std::string& scenario) {
  add_up(session);
  const bool odd = session.communicator().rank() == 1;
  if (scenario == "all-alike") return ExitCode::kNumerics;
  if (odd && scenario == "returns-early") return ExitCode::kDone;
  if (odd && scenario == "returns-a-code-early") return ExitCode::kNumerics;
  if (odd && scenario == "throws-a-number") throw 42;
  add_up(session);
  if (scenario == "other-codes") return odd ? ExitCode::kDone : ExitCode::kNumerics;
  return ExitCode::kDone;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scenario = argc > 1 ? argv[1] : "";
  const std::filesystem::path folder = argc > 2 ? argv[2] : "";
  return launch::run_program(argc, argv, {}, [&](launch::Session& session) {
    return folder.empty() ? run(session, scenario) : run_guarded(session, scenario, folder);
  });
}
