// What tells one model from another, field by field.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sidestream::checkpoint {

// One line for each field that differs: "layers: 6 in the checkpoint, 12 configured". Nested fields
// as "a/b".
std::vector<std::string> differing_fields(const nlohmann::json& stored,
                                          const nlohmann::json& configured);

// Throws CheckpointError that lists the fields when the checkpoint belongs to another model.
void require_same_model(const nlohmann::json& stored, const nlohmann::json& configured,
                        const std::filesystem::path& folder);

}  // namespace sidestream::checkpoint
