# SIDESTREAM_IN_BUNDLE: whether the Python environment is one of launch/setup --bundle. That build/bundle is there says nothing: it may
# be left from an earlier set-up.
file(REAL_PATH "${SIDESTREAM_ENV}" environment_place)
file(REAL_PATH "${PROJECT_SOURCE_DIR}/build/bundle" bundle_place)
cmake_path(IS_PREFIX bundle_place "${environment_place}" NORMALIZE SIDESTREAM_IN_BUNDLE)
