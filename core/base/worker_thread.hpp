// What a thread of Sidestream's own does first, so that the program's threads stay what they are.
#pragma once

#include <initializer_list>
#include <string>

namespace sidestream::core {

// For debuggers, profilers and ps. The system keeps 15 characters.
void name_this_thread(const std::string& name);

// What asks a thread for the stack of its calls: the one signal that comes to every thread.
int stack_signal() noexcept;

// Names this thread and keeps signals away from it, but for those of its own faults: they belong to
// the program's own threads.
// `welcome`: those that may come here all the same, besides stack_signal().
void become_worker_thread(const std::string& name, std::initializer_list<int> welcome = {});

}  // namespace sidestream::core
