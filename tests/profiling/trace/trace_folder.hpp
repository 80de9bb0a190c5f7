// Folders with traces whose answers are known, and unpacking one of their files.
#pragma once

#include <filesystem>
#include <vector>

namespace sidestream::test {

// Each with an expected_truth.json; those of the repository first.
std::vector<std::filesystem::path> traces_with_truth();

void unpack(const std::filesystem::path& gzip, const std::filesystem::path& into);

}  // namespace sidestream::test
