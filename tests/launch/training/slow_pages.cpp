// Preloaded, it makes rank 1 of a job slow at looking at its tokens, as one whose disk is slow: the
// pages of each piece that it has looked at are dropped with half a second's delay.
#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

extern "C" int madvise(void* address, size_t length, int advice) {
  constexpr size_t kPiece = size_t{2} << 20;
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  const bool is_slow = rank != nullptr && std::strcmp(rank, "1") == 0;
  if (advice == MADV_DONTNEED && length >= kPiece && length < 2 * kPiece && is_slow)
    ::usleep(500'000);
  using Madvise = int (*)(void*, size_t, int);
  static const auto real = reinterpret_cast<Madvise>(::dlsym(RTLD_NEXT, "madvise"));
  return real(address, length, advice);
}
