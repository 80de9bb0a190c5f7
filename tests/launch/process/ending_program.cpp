// A program of one's own whose ranks do not end alike. endings_test.cpp starts it under mpirun.
//
//   ending_program <scenario>
#include <array>
#include <string>

#include "launch/process/program.hpp"

namespace {

using sidestream::core::DType;
using sidestream::core::ExitCode;
namespace launch = sidestream::launch;

void add_up(launch::Session& session) {
  std::array<float, 4> values{};
  session.communicator().all_reduce(values.data(), values.size(), DType::kFloat32).wait();
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
  return launch::run_program(argc, argv, {},
                             [&](launch::Session& session) { return run(session, scenario); });
}
