// The figures of a JSON object, each with what it can be.
#pragma once

#include <nlohmann/json.hpp>
#include <span>

#include "core/base/json_fault.hpp"
#include "core/base/number_bounds.hpp"

namespace sidestream::core {

struct NumberField {
  const char* key;
  NumberBounds bounds;
};

// Throws DataError for the first that is there and beyond its bounds, or no number. Those that are
// missing or null are not looked at.
inline void check_numbers(const nlohmann::json& object, std::span<const NumberField> fields,
                          const JsonPlace& place) {
  for (const NumberField& field : fields)
    maybe_number_within(object, field.key, field.bounds, place);
}

}  // namespace sidestream::core
