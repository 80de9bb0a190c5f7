// NVTX's static injection: the program's own copy of NVTX finds this pointer when no tool is
// loaded, and calls what it points to. Linked into programs as an object: in an archive nothing
// would ask for it.
#define NVTX_NO_IMPL  // only the types
#include "profiling/record/nvtx_callbacks.hpp"

extern "C" NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr;
NvtxInitializeInjectionNvtxFunc_t InitializeInjectionNvtx2_fnptr =
    sidestream::record::attach_to_nvtx;
