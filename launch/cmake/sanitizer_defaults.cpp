// Linked into programs with LibTorch when they are built with sanitizers, which call these before
// main: what has to be left out because LibTorch itself is not instrumented. ASAN_OPTIONS and its
// siblings in the environment win.

extern "C" {

const char* __asan_default_options() {
  // Containers that LibTorch has filled lack the marks that ours have; and the pieces of the
  // standard library that libtorch.so exports are, to the sanitizer, second definitions.
  return "detect_container_overflow=0:detect_odr_violation=0";
}

const char* __ubsan_default_options() { return "print_stacktrace=1"; }

// What other people's libraries never give back: registries that live as long as the process.
const char* __lsan_default_suppressions() {
  return "leak:libtorch\n"
         "leak:libc10\n"
         "leak:libgomp\n"
         "leak:libmpi\n"
         "leak:libopen-rte\n"
         "leak:libopen-pal\n"
         "leak:libpmix\n"
         "leak:libhwloc\n"
         "leak:libnuma\n"
         "leak:libcuda\n";
}

}  // extern "C"
