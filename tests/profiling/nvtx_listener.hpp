// A listener to this process's own NVTX ranges, linked into the program (NVTX's static injection):
// what a tool would be told, as plain text, for tests.
#pragma once

#include <string>
#include <vector>

namespace sidestream::test {

// "register NAME", "push NAME", "push NAME payload BUCKET SEQUENCE BYTES", "pop", "start ...", "end
// ID" since the last call, in order. Only events of the domain `sidestream`; "domain NAME" for
// every domain made.
std::vector<std::string> take_nvtx_events();

}  // namespace sidestream::test
