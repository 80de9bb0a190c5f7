// What to do about one file of several that cannot be used.
#pragma once

#include <cstddef>
#include <string>

#include "core/base/error.hpp"

namespace sidestream::trace {

// Runs `read`; of several files the error of one says how to go on with the others.
template <typename Read>
void with_way_on(std::size_t files, const Read& read) {
  if (files < 2) return read();
  try {
    read();
  } catch (const core::DataError& error) {
    throw core::DataError(std::string(error.what()) +
                          ". Without this file (move it away, or name " +
                          "the others one by one) the other " +
                          (files == 2 ? "one is" : std::to_string(files - 1) + " are") + " read");
  }
}

}  // namespace sidestream::trace
