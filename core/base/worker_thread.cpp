#include "core/base/worker_thread.hpp"

#include <pthread.h>
#include <signal.h>

namespace sidestream::core {

void name_this_thread(const std::string& name) {
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
}

int stack_signal() noexcept { return SIGRTMAX - 4; }

void become_worker_thread(const std::string& name, std::initializer_list<int> welcome) {
  sigset_t kept_away;
  sigfillset(&kept_away);
  sigdelset(&kept_away, stack_signal());
  // What an instruction of this thread does, nobody else can answer: blocked, it would end the
  // process without a word, whatever handles it.
  for (const int own_fault : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) sigdelset(&kept_away, own_fault);
  for (const int number : welcome) sigdelset(&kept_away, number);
  ::pthread_sigmask(SIG_SETMASK, &kept_away, nullptr);
  name_this_thread(name);
}

}  // namespace sidestream::core
