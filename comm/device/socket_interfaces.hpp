// Whether NCCL_SOCKET_IFNAME names a network interface of this machine: NCCL itself goes on without
// one and then fails in a way that does not name the variable.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace sidestream::comm {

// Of this machine.
std::vector<std::string> interface_names();

// Empty when `spec` (the variable's value; null: not set) leaves an interface to use; else a
// sentence that names those that are there. Rules of NCCL: a list of prefixes, `=` before it: exact
// names, `^` before it: all but these.
std::string socket_interface_problem(const char* spec, std::span<const std::string> interfaces);

}  // namespace sidestream::comm
