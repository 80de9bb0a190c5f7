// What a thread of Sidestream's own does first, so that the program's threads stay what they are.
#pragma once

#include <initializer_list>
#include <string>

namespace sidestream::core {

// For debuggers, profilers and ps. The system keeps 15 characters.
void name_this_thread(const std::string& name);

// Names this thread and keeps signals away from it: they belong to the program's own threads.
// `welcome`: those that may come here all the same.
void become_worker_thread(const std::string& name, std::initializer_list<int> welcome = {});

}  // namespace sidestream::core
