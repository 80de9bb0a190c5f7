// What a parser says about flags that it refuses.
#pragma once

#include <string>

#include "core/base/error.hpp"

namespace sidestream::launch {

// Of the ConfigError that the function throws; "no error" where it throws none.
template <typename Function>
std::string config_error_of(Function function) {
  try {
    function();
  } catch (const core::ConfigError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace sidestream::launch
