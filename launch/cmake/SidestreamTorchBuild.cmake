# What targets with tensors share when they are built: fmt as LibTorch has it, and a precompiled header.

# Its folder of headers holds a newer fmt than the system's library, in a namespace of its own: compiled once here, for in
# headers only it costs 5 s in every file that formats a number.
add_library(sidestream_torch_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/torch_fmt.cpp)
target_include_directories(sidestream_torch_fmt SYSTEM PRIVATE ${SIDESTREAM_TORCH_DIR}/include)
target_link_libraries(sidestream_torch_fmt PRIVATE sidestream::options)
add_library(sidestream::torch_fmt ALIAS sidestream_torch_fmt)
set_target_properties(sidestream_torch_fmt PROPERTIES EXPORT_NAME torch_fmt)
if(SIDESTREAM_SANITIZE)
  add_library(sidestream_sanitizer_defaults OBJECT ${CMAKE_CURRENT_LIST_DIR}/sanitizer_defaults.cpp)
  target_link_libraries(sidestream_sanitizer_defaults PRIVATE sidestream::options)
endif()

# One precompiled header for every target with tensors, of those parts of LibTorch that most of them use. GCC instantiates
# what templates a precompiled header leaves open in every file anew: with torch/torch.h that alone takes 9 s a file, with
# these 4 s. Modules, optimizers and archives are included where they are used.
# CONFIGURE leaves a file alone that is the same already: a second configure must not compile everything anew.
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/generated/torch_pch.cpp"
     CONTENT "// Compiled once, to make the shared precompiled header.\n")
add_library(sidestream_torch_pch OBJECT "${PROJECT_BINARY_DIR}/generated/torch_pch.cpp")
target_link_libraries(sidestream_torch_pch PRIVATE sidestream::options sidestream::torch Threads::Threads)
target_precompile_headers(sidestream_torch_pch PRIVATE <torch/types.h> <torch/autograd.h> <torch/nn/module.h> <torch/utils.h>
                          <algorithm> <functional> <map> <memory> <string> <vector>)
