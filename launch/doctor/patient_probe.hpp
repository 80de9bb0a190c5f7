// A probe of storage on a thread of its own: a file system that has died (NFS without its server)
// holds whoever touches it for ever, and that is what somebody wants to hear.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>

#include "launch/doctor/rank_facts.hpp"

namespace sidestream::launch::doctor {

struct ProbePatience {
  std::chrono::milliseconds slow{std::chrono::seconds(60)};    // then the probe is asked to end
  std::chrono::milliseconds silent{std::chrono::seconds(90)};  // then it has got no answer
};

// Measures, and ends early when the function that it is given says so. It owns what it uses.
using Probe = std::function<StorageFacts(const std::function<bool()>& stop)>;

// What the probe of this folder finds. One that gets no answer is left behind with its thread.
// `stop`: somebody wants the end of it all, which is a second away then.
StorageFacts probe_with_patience(const std::filesystem::path& folder, Probe probe,
                                 const std::function<bool()>& stop,
                                 const ProbePatience& patience = {});

}  // namespace sidestream::launch::doctor
