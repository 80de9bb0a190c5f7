// The folder of public traces beside the repository, and unpacking one of its files.
#pragma once

#include <filesystem>

namespace sidestream::test {

std::filesystem::path trace_folder();

void unpack(const std::filesystem::path& gzip, const std::filesystem::path& into);

}  // namespace sidestream::test
