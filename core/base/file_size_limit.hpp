// `ulimit -f`: how large a file of this process may become.
#pragma once

namespace sidestream::core {

// From now on a write beyond the limit fails ("File too large") as one on a full disk does. The
// system would end the process without a word (SIGXFSZ). Programs that this one starts inherit it.
void report_file_size_limit() noexcept;

}  // namespace sidestream::core
