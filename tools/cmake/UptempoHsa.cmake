# Finds ROCr, hsakmt, zstd and HIP, and corrects the imported targets of the packages hsa-runtime64 and hsakmt. It is
# installed with the package uptempo, whose configuration needs it too.
#
#   UPTEMPO_ROCM_ROOTS
#       The folders that are searched for AMD's ROCm before the distribution's: the environment's
#       ROCM_PATH, and /opt/rocm. CMAKE_PREFIX_PATH comes before them.
#   uptempo_find_hsa()
#       Finds the package hsa-runtime64 (ROCr), which is required.
#   uptempo_correct_includes(<target> <header> [<folder>...])
#       Makes `#include <header>` find the header, which may be in one of the folders below an
#       include directory.
#   uptempo_find_hsakmt()
#       Finds hsakmt if it is installed. Sets UPTEMPO_ROCR_SHARES_HSAKMT: whether ROCr loads
#       libhsakmt.so, so that a program may use hsakmt beside it.
#   uptempo_find_zstd()
#       Finds libzstd and defines zstd::libzstd, since Debian's package has no CMake files. Stops
#       with an error if it is not installed.
#   uptempo_find_hip()
#       Finds HIP's headers and library and defines uptempo::amdhip64, for sources that a plain C++
#       compiler compiles. Does nothing if one of them is missing. HIP's own package is not used,
#       because it requires the device compiler's packages, too.
#
# Both HSA packages record an include directory, but not always the one for `#include <hsa/hsa.h>`.
# Debian's hsa-runtime64 names .../include/hsa. A -dev package may lack the recorded directory,
# which CMake rejects. The first function therefore drops directories that do not exist. It adds the
# directory of the header unless the compiler searches that one anyway, because -isystem
# /usr/include would break the order of include_next.
include_guard(GLOBAL)

set(UPTEMPO_ROCM_ROOTS $ENV{ROCM_PATH} /opt/rocm CACHE INTERNAL "")

# A macro, since the package sets variables.
macro(uptempo_find_hsa)
  find_package(hsa-runtime64 CONFIG REQUIRED HINTS ${UPTEMPO_ROCM_ROOTS})
  uptempo_correct_includes(hsa-runtime64::hsa-runtime64 hsa/hsa.h)
endmacro()

function(uptempo_correct_includes target header)
  get_target_property(listed ${target} INTERFACE_INCLUDE_DIRECTORIES)
  set(directories "")
  set(found FALSE)
  foreach(directory IN LISTS listed)
    if(directory AND EXISTS "${directory}")
      list(APPEND directories "${directory}")
      if(EXISTS "${directory}/${header}")
        set(found TRUE)
      endif()
    endif()
  endforeach()
  if(NOT found)
    string(MAKE_C_IDENTIFIER "UPTEMPO_${header}_DIR" variable)
    find_path(${variable} NAMES ${header} HINTS ${UPTEMPO_ROCM_ROOTS} PATH_SUFFIXES include ${ARGN})
    mark_as_advanced(${variable})
    if(NOT ${variable})
      message(FATAL_ERROR "uptempo: ${target} is installed but its header <${header}> is not. Install its development package.")
    endif()
    if(NOT "${${variable}}" IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
      list(APPEND directories "${${variable}}")
    endif()
  endif()
  list(REMOVE_ITEM directories ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
  set_target_properties(${target} PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${directories}")
endfunction()

function(uptempo_find_hsakmt)
  set(UPTEMPO_ROCR_SHARES_HSAKMT FALSE PARENT_SCOPE)
  set(BUILD_SHARED_LIBS ON)  # newer releases set this project's option, and require it
  find_package(hsakmt CONFIG QUIET HINTS ${UPTEMPO_ROCM_ROOTS})
  if(NOT hsakmt_FOUND)
    return()
  endif()
  uptempo_correct_includes(hsakmt::hsakmt hsakmt.h hsakmt)
  get_target_property(configurations hsa-runtime64::hsa-runtime64 IMPORTED_CONFIGURATIONS)
  list(GET configurations 0 configuration)
  get_target_property(library hsa-runtime64::hsa-runtime64 IMPORTED_LOCATION_${configuration})
  execute_process(COMMAND "${CMAKE_READELF}" --dynamic "${library}" OUTPUT_VARIABLE dynamic ERROR_QUIET)
  if(dynamic MATCHES "NEEDED[^\n]*libhsakmt\\.so")
    set(UPTEMPO_ROCR_SHARES_HSAKMT TRUE PARENT_SCOPE)
  endif()
endfunction()

function(uptempo_find_zstd)
  if(TARGET zstd::libzstd)
    return()
  endif()
  find_path(UPTEMPO_ZSTD_DIR NAMES zstd.h)
  find_library(UPTEMPO_ZSTD_LIBRARY NAMES zstd)
  mark_as_advanced(UPTEMPO_ZSTD_DIR UPTEMPO_ZSTD_LIBRARY)
  if(NOT UPTEMPO_ZSTD_DIR OR NOT UPTEMPO_ZSTD_LIBRARY)
    message(FATAL_ERROR "uptempo: libzstd was not found; install its development package (Debian: libzstd-dev)")
  endif()
  add_library(zstd::libzstd UNKNOWN IMPORTED GLOBAL)
  set_target_properties(zstd::libzstd PROPERTIES IMPORTED_LOCATION "${UPTEMPO_ZSTD_LIBRARY}")
  if(NOT UPTEMPO_ZSTD_DIR IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    set_target_properties(zstd::libzstd PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${UPTEMPO_ZSTD_DIR}")
  endif()
endfunction()

function(uptempo_find_hip)
  if(TARGET uptempo::amdhip64)
    return()
  endif()
  find_path(UPTEMPO_HIP_DIR NAMES hip/hip_runtime_api.h HINTS ${UPTEMPO_ROCM_ROOTS} PATH_SUFFIXES include)
  find_library(UPTEMPO_HIP_LIBRARY NAMES amdhip64 HINTS ${UPTEMPO_ROCM_ROOTS} PATH_SUFFIXES lib)
  mark_as_advanced(UPTEMPO_HIP_DIR UPTEMPO_HIP_LIBRARY)
  if(NOT UPTEMPO_HIP_DIR OR NOT UPTEMPO_HIP_LIBRARY)
    return()
  endif()
  add_library(uptempo::amdhip64 SHARED IMPORTED GLOBAL)
  set_target_properties(uptempo::amdhip64 PROPERTIES IMPORTED_LOCATION "${UPTEMPO_HIP_LIBRARY}"
                        INTERFACE_COMPILE_DEFINITIONS __HIP_PLATFORM_AMD__)
  if(NOT UPTEMPO_HIP_DIR IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    set_target_properties(uptempo::amdhip64 PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${UPTEMPO_HIP_DIR}")
  endif()
endfunction()
