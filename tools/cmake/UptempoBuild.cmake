# Options of every target of this tree. The top level uses this file, and so does tools/vgpu when it
# is built alone.
#
#   uptempo_target(<target>)
#       Sets warnings (errors with UPTEMPO_WERROR), C++20 and the sanitizers of UPTEMPO_SANITIZE.
#       Includes are <uptempo/...> for headers of engine/ and aql/, and relative to the root of the
#       tree for others.
#   uptempo_subprojects()
#       For subdirectories that are also projects of their own, which look for the package uptempo:
#       sets these options for all targets of the calling directory and of those below it, and lets
#       find_package(uptempo) find this build's targets.
#   uptempo_executable(<target> <source>...)
#       Calls add_executable and uptempo_target. The program goes to bin/.
#   uptempo_c_executable(<target> <source>...)
#       The same for C11. The engine is C++, so CMake links the program with the C++ compiler.
#   uptempo_cold(<target>...)
#       Compiles targets with less optimisation. For tests, and for code that parses command lines
#       or prints reports.
#   uptempo_cold_sources(<file>...)
#       The same for some sources of the calling directory. CMake compiles each of them alone, also
#       with CMAKE_UNITY_BUILD.
#   uptempo_precompile(<target> <header>...)
#       Parses the standard headers of precompiled.hpp and these headers once for all sources of the
#       target. Sources still include what they use: the preset debug builds without precompiled
#       headers.
include_guard(GLOBAL)
include(GNUInstallDirs)

if(NOT DEFINED UPTEMPO_WERROR)
  option(UPTEMPO_WERROR "Treat warnings as errors" OFF)
endif()
option(UPTEMPO_EVERYTHING "Build and test also what tools/check leaves to its --all" ON)
set(UPTEMPO_SANITIZE "" CACHE STRING "Sanitizers, for example address;undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_RUNTIME_OUTPUT_DIRECTORY)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
  set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
endif()
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

# Configurations of this build use packages that were built with another configuration name
# (Debian's are "None", but "RelWithDebInfo" for LLVM 21).
foreach(_config RELEASE DEBUG RELWITHDEBINFO MINSIZEREL)
  if(NOT DEFINED CMAKE_MAP_IMPORTED_CONFIG_${_config})
    set(CMAKE_MAP_IMPORTED_CONFIG_${_config} ${_config} NONE RELEASE RELWITHDEBINFO "")
  endif()
endforeach()

get_filename_component(UPTEMPO_ROOT_DIR ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
set(UPTEMPO_ROOT_DIR ${UPTEMPO_ROOT_DIR} CACHE INTERNAL "Root of Uptempo's tree")

# The include root has the names of an installation: <uptempo/dispatch/queue.hpp> is
# engine/dispatch/queue.hpp, <uptempo/aql/packet.hpp> is aql/packet.hpp, and <uptempo/vgpu/query.h>
# is tools/vgpu/query.h. It consists of links, so that dependencies of a build are the files of the
# tree.
set(UPTEMPO_INCLUDE_DIR ${PROJECT_BINARY_DIR}/include CACHE INTERNAL "Holds uptempo/, the links to engine/, aql/ and query.h")
file(REMOVE_RECURSE ${UPTEMPO_INCLUDE_DIR}/uptempo)
file(MAKE_DIRECTORY ${UPTEMPO_INCLUDE_DIR}/uptempo/vgpu)
file(CREATE_LINK ${UPTEMPO_ROOT_DIR}/tools/vgpu/query.h ${UPTEMPO_INCLUDE_DIR}/uptempo/vgpu/query.h SYMBOLIC)
file(GLOB _entries CONFIGURE_DEPENDS ${UPTEMPO_ROOT_DIR}/engine/*)
foreach(_entry IN LISTS _entries ITEMS ${UPTEMPO_ROOT_DIR}/aql)
  if(IS_DIRECTORY ${_entry} OR _entry MATCHES "\\.(h|hpp)$")
    get_filename_component(_name ${_entry} NAME)
    file(CREATE_LINK ${_entry} ${UPTEMPO_INCLUDE_DIR}/uptempo/${_name} SYMBOLIC)
  endif()
endforeach()

# An anonymous namespace is no defect in a source that another one includes.
set(UPTEMPO_UNITY_WARNINGS "")
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(UPTEMPO_UNITY_WARNINGS $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
endif()

# GCC collects garbage in its own memory from 128 MiB on. Later collections save about a tenth of its
# time and take a fifth more memory: 750 MB for the largest sources.
set(UPTEMPO_COMPILER_MEMORY
    $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-expand=1000>
    $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=500000>)

# GCC's -Wconversion leaves sign conversions out of C++; clang's does not.
# GCC 12 reports an impossible overlap inside std::string's operator+ (GCC bug 105651). GCC 13 and
# newer take a reference that a function returns for one into the call's temporary arguments.
set(UPTEMPO_COMPILE_OPTIONS -Wall -Wextra -Wconversion -Wshadow
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
    $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_GREATER_EQUAL:$<CXX_COMPILER_VERSION>,13>>:-Wno-dangling-reference>
    $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion>
    ${UPTEMPO_UNITY_WARNINGS} ${UPTEMPO_COMPILER_MEMORY})
if(UPTEMPO_WERROR)
  list(APPEND UPTEMPO_COMPILE_OPTIONS -Werror)
endif()
set(UPTEMPO_LINK_OPTIONS "")
if(UPTEMPO_SANITIZE)
  list(JOIN UPTEMPO_SANITIZE "," _sanitizers)
  list(APPEND UPTEMPO_COMPILE_OPTIONS -fsanitize=${_sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  set(UPTEMPO_LINK_OPTIONS -fsanitize=${_sanitizers})
endif()

function(uptempo_target target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PRIVATE ${UPTEMPO_INCLUDE_DIR} ${UPTEMPO_ROOT_DIR})
  target_compile_options(${target} PRIVATE ${UPTEMPO_COMPILE_OPTIONS})
  target_link_options(${target} PUBLIC ${UPTEMPO_LINK_OPTIONS})
endfunction()

# A macro, since find_package looks at the caller's variable.
macro(uptempo_subprojects)
  add_compile_options(${UPTEMPO_COMPILE_OPTIONS} $<$<COMPILE_LANGUAGE:C>:-Wpedantic>)
  add_link_options(${UPTEMPO_LINK_OPTIONS})
  file(WRITE ${CMAKE_BINARY_DIR}/package/uptempoConfig.cmake "")
  set(uptempo_DIR ${CMAKE_BINARY_DIR}/package)
endmacro()

function(uptempo_executable target)
  add_executable(${target} ${ARGN})
  uptempo_target(${target})
endfunction()

function(uptempo_c_executable target)
  uptempo_executable(${target} ${ARGN})
  # Each source has names of its own, so they are compiled one by one.
  set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF UNITY_BUILD OFF)
  target_compile_options(${target} PRIVATE -Wpedantic)
endfunction()

# CLI11 and nlohmann-json are large templates whose speed does not matter here. -O3 doubles their
# compile time.
function(uptempo_cold)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release,RelWithDebInfo>:-Og>)
  endforeach()
endfunction()

function(uptempo_cold_sources)
  set_property(SOURCE ${ARGN} APPEND PROPERTY COMPILE_OPTIONS $<$<CONFIG:Release,RelWithDebInfo>:-Og>)
  # Precompiled headers hold for one optimisation only.
  set_property(SOURCE ${ARGN} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
endfunction()

function(uptempo_precompile target)
  target_precompile_headers(${target} PRIVATE ${UPTEMPO_ROOT_DIR}/tools/cmake/precompiled.hpp ${ARGN})
endfunction()
