// Where Nsight Systems is on this machine.
#pragma once

#include <filesystem>
#include <optional>

namespace sidestream::launch {

// The places of launch/nsys-collect, in its order: the PATH, beside the CUDA toolkit, /opt/nvidia
// (the newest first), and what launch/fetch-nsys has unpacked into the build folder that holds this
// program. Nothing: none of them has it.
std::optional<std::filesystem::path> find_nsys();

}  // namespace sidestream::launch
