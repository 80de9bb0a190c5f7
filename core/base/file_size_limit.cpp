#include "core/base/file_size_limit.hpp"

#include <signal.h>

namespace sidestream::core {

void report_file_size_limit() noexcept { static_cast<void>(::signal(SIGXFSZ, SIG_IGN)); }

}  // namespace sidestream::core
