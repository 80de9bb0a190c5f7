// Preloaded, it sets the time of day of a process back by an hour once SIDESTREAM_TEST_CLOCK_FILE
// is there, as an administrator does, or a daemon that keeps clocks.
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  constexpr time_t kHour = 3600;
  static const char* const file = std::getenv("SIDESTREAM_TEST_CLOCK_FILE");
  const long result = ::syscall(SYS_clock_gettime, clock, time);
  const bool set_back = clock == CLOCK_REALTIME && file != nullptr && ::access(file, F_OK) == 0;
  if (result == 0 && set_back) time->tv_sec -= kHour;
  return static_cast<int>(result);
}
