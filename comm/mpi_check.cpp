#include "comm/mpi_check.hpp"

#include <array>
#include <string>

#include "core/base/error.hpp"

namespace sidestream::comm {

void check_mpi(int code, std::string_view what, std::source_location where) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  if (MPI_Error_string(code, text.data(), &length) != MPI_SUCCESS) length = 0;
  throw core::CollectiveError(std::string(what) + ": " +
                              (length > 0
                                   ? std::string(text.data(), static_cast<std::size_t>(length))
                                   : "MPI error " + std::to_string(code)) +
                              " (" + where.file_name() + ":" + std::to_string(where.line()) + ")");
}

}  // namespace sidestream::comm
