# Defines fmt::fmt, and UPTEMPO_ZSTD_LIBRARY for uptempo_find_zstd(), for the Python wheel, whose
# programs and libraries must not need these libraries where they are installed: fmt's functions are
# compiled with their callers, since Debian has no archive of them, and zstd's archive is linked.
include_guard(GLOBAL)

find_path(UPTEMPO_FMT_DIR NAMES fmt/format.h)        # Debian: libfmt-dev
find_library(UPTEMPO_ZSTD_LIBRARY NAMES libzstd.a)   # Debian: libzstd-dev
mark_as_advanced(UPTEMPO_FMT_DIR UPTEMPO_ZSTD_LIBRARY)
if(NOT UPTEMPO_FMT_DIR OR NOT UPTEMPO_ZSTD_LIBRARY)
  message(FATAL_ERROR "The wheel needs fmt's headers and zstd's archive (Debian: libfmt-dev, libzstd-dev).")
endif()
add_library(fmt::fmt INTERFACE IMPORTED GLOBAL)
set_target_properties(fmt::fmt PROPERTIES INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY)
if(NOT UPTEMPO_FMT_DIR IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
  set_target_properties(fmt::fmt PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${UPTEMPO_FMT_DIR}")
endif()

# Messages name sources by their place in the tree, not in the folder of the build.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}/=)
