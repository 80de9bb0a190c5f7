// All that the ranks of a job read, measure and tell each other: what the checks then judge.
#pragma once

#include <optional>

#include "launch/doctor/job_facts.hpp"
#include "launch/options/doctor_options.hpp"
#include "launch/process/program.hpp"

namespace sidestream::launch::doctor {

// Collective; blocks for some seconds. `gpu`: what choose_device() found. Complete on rank 0;
// nothing on all ranks when one was asked to stop. Throws what the communicator of the host ranks
// throws: without it nobody can be asked.
std::optional<JobFacts> examine(Session& session, const DoctorOptions& options,
                                const comm::DeviceFinding& gpu);

}  // namespace sidestream::launch::doctor
