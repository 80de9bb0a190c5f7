#include "launch/reporting/torn_line.hpp"

#include <unistd.h>

namespace sidestream::launch {

bool ends_with_a_line(int file) {
  const off_t size = ::lseek(file, 0, SEEK_END);
  char last = '\n';
  return size <= 0 || ::pread(file, &last, 1, size - 1) != 1 || last == '\n';
}

}  // namespace sidestream::launch
