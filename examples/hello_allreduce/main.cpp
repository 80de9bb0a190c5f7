// The smallest program on Sidestream: every rank adds its number, and every rank sees the sum.
//
//   mpirun -np 2 build/release/examples/hello_allreduce

#include <fmt/format.h>

#include <span>

#include "core/base/error.hpp"
#include "launch/process/program.hpp"

namespace launch = sidestream::launch;
namespace comm = sidestream::comm;
using sidestream::core::DType;
using sidestream::core::ExitCode;

int main(int argc, char** argv) {
  return launch::run_program(argc, argv, {}, [](launch::Session& session) {
    comm::Communicator& ranks = session.communicator();
    constexpr std::size_t kCount = 1 << 20;
    // Memory of the communicator: on one node the ranks reduce it in place, without copies.
    const comm::Allocation memory = ranks.allocate(kCount * sizeof(float));
    const std::span<float> values(reinterpret_cast<float*>(memory.data), kCount);
    for (float& value : values) value = static_cast<float>(ranks.rank() + 1);

    comm::Work sum = ranks.all_reduce(values.data(), values.size(), DType::kFloat32);
    // ... the caller may compute here: the collective goes on by itself ...
    sum.wait();

    const float expected = static_cast<float>(ranks.size() * (ranks.size() + 1)) / 2;
    for (const float value : values) {
      if (value != expected) {
        throw sidestream::core::Error(fmt::format("sum: expected {}, found {}", expected, value));
      }
    }
    if (session.is_first_rank()) {
      fmt::print("{} ranks on {} node(s) over {}: each has the sum {}\n", ranks.size(),
                 ranks.topology().node_count, ranks.backend_name(), values[0]);
    }
    return ExitCode::kDone;
  });
}
