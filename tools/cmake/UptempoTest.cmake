# Test functions. Each call adds one Catch2 binary and one ctest test of the same name. test/ uses
# this file, and so does test/vgpu when tools/vgpu is built alone.
#
#   uptempo_test(<name> SOURCES <file>... [LIBRARIES <target>...] [LABELS <label>...])
#       A test without a device.
#   uptempo_vgpu_test(<name> SOURCES <file>... [LIBRARIES <target>...]
#                     [OPTIONS <launcher option>...] [ONE_DEVICE])
#       A test that runs under uptempo-vgpu, on each device of the suite.
#   uptempo_device_tests(<target> [OPTIONS <launcher option>...] [ONE_DEVICE])
#       The same for a program of its own, without Catch2. Its exit code is the result.
#   uptempo_hip_test(<name> SOURCES <file>... [LIBRARIES <target>...])
#       The same for a test of HIP's host side: hipcc compiles the sources that end in .hip, without
#       sanitizers. Catch2 is linked; a source with a main() is a program of its own.
#   uptempo_sanitize_with_hip(<target>)
#       With sanitizers: options that HIP needs (test/support/hip_sanitizers.cpp). For programs that
#       uptempo_hip_test does not add.
#   uptempo_program_test(<name> SOURCES <file>... PROGRAMS <macro>=<target>...
#                        [LIBRARIES <target>...] [LABELS <label>...])
#       A test that starts programs as a user does. Each macro is the path of that target's file.
#
#   uptempo_find_pythons(<variable>)
#       Sets the variable to the interpreters of CPython 3.11 to 3.14 in PATH, one for each version,
#       or to those of UPTEMPO_PYTHONS; and <variable>_VERSIONS to "3.11", ..., in the same order.
#
# Without UPTEMPO_EVERYTHING there are fewer tests: README.md in test/ says which.
#
# The time limit of a test ends a hang and measures nothing: it is that of the test presets, or
# 1,500 s (CTest's own) without a preset. Seeds in one test have a limit each.
#
# Kernels of tests are compiled for the targets that run them, which saves build time:
#   UPTEMPO_VGPU_TARGETS         the devices of the virtual GPU that run here; the first is its
#                                default device. gfx942 needs ROCr 6.1 and a compiler that knows it.
#   UPTEMPO_VGPU_SUITE_TARGETS   the devices of the suite: the default device and, if it runs here,
#                                gfx942, whose caches are others. On the latter a test's name ends
#                                in _gfx942. ONE_DEVICE: the test depends on the default device, or
#                                has nothing to do with a device's target.
#   UPTEMPO_VGPU_DEFAULT_TARGET
#
#   uptempo_vgpu_variant(<name> <suffix> <launcher option>...)
#       <name>_<suffix>: the binary of the uptempo_vgpu_test <name> with other options of the
#       launcher, on the default device.
#   uptempo_long_cases(<name>)
#       <name>_long, with the label long: the test cases with the tag [.long] of the test <name>, on
#       the default device if it runs under uptempo-vgpu.
#
# The following functions add one ctest test each for COMMAND, a program that is correct on the
# plain device. Each appends its suffix to <name>. Delays and early read indices have nothing to do
# with a device's target; the other functions run on each device of the suite, without ONE_DEVICE.
#
#   uptempo_checked_test(<name> COMMAND <program> [<argument>...] [RULES <rules>] [ONE_DEVICE])
#       _checked: `--check fences`, or `--check RULES`, finds nothing.
#   uptempo_memory_test(<name> COMMAND <program> [<argument>...] [OPTIONS <option>...])
#       _memory_checked: `--check memory` finds nothing, on the default device. OPTIONS: further
#       ones of uptempo-vgpu.
#   uptempo_waits_test(<name> COMMAND <program> [<argument>...])
#       _waits: `--check fences,waits` finds nothing, on the default device.
#   uptempo_incoherent_test(<name> COMMAND <program> [<argument>...] SEEDS <n> [LONG <n>]
#                           [ONE_DEVICE])
#       _incoherent: correct with stale caches, for the seeds 1 to SEEDS. _incoherent_long_<first>,
#       with the label long: for the seeds up to LONG, 50 in each test. With the cache variable
#       UPTEMPO_SEEDS, _incoherent runs that many seeds and there is no _incoherent_long:
#         cmake --preset release -DUPTEMPO_SEEDS=1000 && cmake --build build
#         ctest --test-dir build -R '_incoherent$'
#   uptempo_delay_test(<name> COMMAND <program> [<argument>...] SEEDS <n> [LONG <n>])
#       _delay: correct with random delays in each step of the device, for the seeds 1 to SEEDS.
#       _delay_long_<first>, with the label long: for the seeds up to LONG, 50 in each test. Without
#       UPTEMPO_EVERYTHING there are none.
#   uptempo_early_test(<name> COMMAND <program> [<argument>...] SEEDS <n>)
#       _early: correct where the read index passes packets at their launch, for the seeds 1 to
#       SEEDS.
#   uptempo_lazy_bar_test(<name> COMMAND <program> [<argument>...] SEEDS <n> [LONG <n>]
#                         [ONE_DEVICE])
#       _lazy_bar: correct where the device sees the host's stores to its memory late, for the seeds
#       1 to SEEDS. _lazy_bar_long_<first>, with the label long: for the seeds up to LONG, 50 in
#       each test.
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/UptempoBuild.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/UptempoHip.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/../../kernels/UptempoKernels.cmake)
include(CheckSymbolExists)
find_package(Catch2 REQUIRED)  # Debian: catch2
find_package(Threads REQUIRED)

if(NOT TARGET hsa-runtime64::hsa-runtime64)
  uptempo_find_hsa()
endif()

# The launcher recognises ROCr 6.1 by the same function (tools/vgpu/interpose/runtime_age.cpp).
function(_uptempo_choose_devices)
  set(suite gfx90a)
  set(CMAKE_REQUIRED_LIBRARIES hsa-runtime64::hsa-runtime64)
  check_symbol_exists(hsa_amd_agent_set_async_scratch_limit "hsa/hsa_ext_amd.h" UPTEMPO_ROCR_IS_6_1)
  _uptempo_expand_targets(targets vgpu)
  list(REMOVE_ITEM targets gfx90a)
  list(PREPEND targets gfx90a)
  if(NOT UPTEMPO_ROCR_IS_6_1)
    list(REMOVE_ITEM targets gfx942)
  elseif("gfx942" IN_LIST targets)
    list(APPEND suite gfx942)
  endif()
  set(UPTEMPO_VGPU_TARGETS "${targets}" CACHE INTERNAL "")
  set(UPTEMPO_VGPU_SUITE_TARGETS "${suite}" CACHE INTERNAL "")
  set(UPTEMPO_VGPU_DEFAULT_TARGET gfx90a CACHE INTERNAL "")
endfunction()
_uptempo_choose_devices()
set(_test_root ${CMAKE_CURRENT_LIST_DIR}/../../test)
set(UPTEMPO_SEEDS "" CACHE STRING "Seeds of each _incoherent test; empty: each test's own number")
# Options and suppressions for sanitized tests under the launcher. Children of a fork start threads,
# also where the parent has some, in tests of several processes. LeakSanitizer of GCC 12 takes the
# 16 bytes before a thread's block of a loaded library for the allocator's header of glibc 2.19. If
# the block begins 16 bytes into a page, these bytes are AddressSanitizer's own header, and
# LeakSanitizer dies ("Tracer caught signal 11"). With this option it knows of no such blocks, and
# reports what only they refer to: a test of a program that loads HIP by name looks for no leaks.
set(UPTEMPO_VGPU_TEST_ENVIRONMENT
  "ASAN_OPTIONS=intercept_tls_get_addr=0"
  "LSAN_OPTIONS=print_suppressions=0:suppressions=${_test_root}/vgpu/lsan.supp"
  "TSAN_OPTIONS=die_after_fork=0:suppressions=${_test_root}/vgpu/tsan.supp" CACHE INTERNAL "")
set(_UPTEMPO_TEST_HEADERS_SOURCE ${_test_root}/support/catch_headers.cpp CACHE INTERNAL "")
set(_UPTEMPO_HIP_SANITIZERS_SOURCE ${_test_root}/support/hip_sanitizers.cpp CACHE INTERNAL "")
set(_UPTEMPO_EVERY_SEED ${_test_root}/vgpu/every_seed.cmake CACHE INTERNAL "")

if(TARGET Catch2::Catch2WithMain)
  add_library(uptempo_test_main INTERFACE)
  target_link_libraries(uptempo_test_main INTERFACE Catch2::Catch2WithMain)
else()
  add_library(uptempo_test_main STATIC ${_test_root}/support/catch_main.cpp)
  uptempo_target(uptempo_test_main)
  target_link_libraries(uptempo_test_main PUBLIC Catch2::Catch2)
endif()

set(UPTEMPO_PYTHONS "" CACHE STRING "Interpreters for tests of Python programs; empty: those of 3.11 to 3.14 in PATH")
function(uptempo_find_pythons variable)
  set(candidates ${UPTEMPO_PYTHONS})
  if(NOT candidates)
    foreach(name python3 python3.11 python3.12 python3.13 python3.14)
      find_program(found ${name} NO_CACHE)
      if(found)
        list(APPEND candidates ${found})
      endif()
      unset(found)
    endforeach()
  endif()
  set(pythons "")
  set(versions "")
  foreach(candidate IN LISTS candidates)
    execute_process(
      COMMAND ${candidate} -c "import ctypes, sys; print('%d.%d' % sys.version_info[:2], sys.implementation.name)"
      RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_QUIET)
    if(status EQUAL 0 AND output MATCHES "^(3[.]1[1-4]) cpython" AND NOT CMAKE_MATCH_1 IN_LIST versions)
      list(APPEND versions ${CMAKE_MATCH_1})
      list(APPEND pythons ${candidate})
    endif()
  endforeach()
  if(NOT pythons)
    message(FATAL_ERROR "No CPython 3.11 to 3.14 with ctypes was found: name one in UPTEMPO_PYTHONS, or configure without tests")
  endif()
  set(${variable} ${pythons} PARENT_SCOPE)
  set(${variable}_VERSIONS ${versions} PARENT_SCOPE)
endfunction()

function(_uptempo_set_up_test name labels)
  set_tests_properties(${name} PROPERTIES LABELS "${labels}"
                       ENVIRONMENT "${UPTEMPO_VGPU_TEST_ENVIRONMENT}")
endfunction()

# Sets `names` and `options` to lists of equal length: for each device of the suite, or for the
# default device alone, the test's name and the launcher's option.
function(_uptempo_devices names options name one_device)
  set(all_names ${name})
  set(all_options --device=${UPTEMPO_VGPU_DEFAULT_TARGET})
  if(NOT one_device)
    foreach(target IN LISTS UPTEMPO_VGPU_SUITE_TARGETS)
      if(NOT target STREQUAL UPTEMPO_VGPU_DEFAULT_TARGET)
        list(APPEND all_names ${name}_${target})
        list(APPEND all_options --device=${target})
      endif()
    endforeach()
  endif()
  set(${names} ${all_names} PARENT_SCOPE)
  set(${options} ${all_options} PARENT_SCOPE)
endfunction()

# uptempo_test_headers(<name> [HEADERS <header>...] [LIBRARIES <target>...]): parses the headers that
# every test includes once, and these headers, with the compile options of the calling directory, for
# the tests that are added in it afterwards.
function(uptempo_test_headers name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;LIBRARIES")
  uptempo_executable(${name} ${_UPTEMPO_TEST_HEADERS_SOURCE})
  uptempo_cold(${name})
  target_link_libraries(${name} PRIVATE uptempo_test_main ${arg_LIBRARIES} Threads::Threads)
  uptempo_precompile(${name} ${UPTEMPO_ROOT_DIR}/test/support/catch.hpp ${arg_HEADERS})
  set(UPTEMPO_TEST_HEADERS ${name} PARENT_SCOPE)
endfunction()

function(_uptempo_test_program name)
  uptempo_executable(${name} ${ARGN})
  uptempo_cold(${name})
  if(NOT CMAKE_DISABLE_PRECOMPILE_HEADERS)  # CMake 4 warns of the reuse of nothing
    target_precompile_headers(${name} REUSE_FROM ${UPTEMPO_TEST_HEADERS})
  endif()
endfunction()

function(uptempo_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES;LABELS")
  _uptempo_test_program(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE uptempo_test_main ${arg_LIBRARIES} Threads::Threads)
  add_test(NAME ${name} COMMAND ${name})
  _uptempo_set_up_test(${name} "${arg_LABELS}")
endfunction()

function(uptempo_vgpu_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ONE_DEVICE" "" "SOURCES;LIBRARIES;OPTIONS")
  _uptempo_test_program(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE uptempo_test_main ${arg_LIBRARIES} Threads::Threads)
  set_property(TARGET ${name} PROPERTY UPTEMPO_RUNS_ON_DEVICE ON)
  set(one_device "")
  if(arg_ONE_DEVICE)
    set(one_device ONE_DEVICE)
  endif()
  uptempo_device_tests(${name} OPTIONS ${arg_OPTIONS} ${one_device})
endfunction()

function(uptempo_device_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ONE_DEVICE" "" "OPTIONS")
  add_dependencies(${name} uptempo_vgpu_launcher)
  _uptempo_devices(tests devices ${name} "${arg_ONE_DEVICE}")
  foreach(test device IN ZIP_LISTS tests devices)
    add_test(NAME ${test} COMMAND uptempo_vgpu_launcher ${device} ${arg_OPTIONS} -- $<TARGET_FILE:${name}>)
    _uptempo_set_up_test(${test} vgpu)
  endforeach()
endfunction()

function(uptempo_sanitize_with_hip target)
  if(UPTEMPO_SANITIZE)
    target_sources(${target} PRIVATE ${_UPTEMPO_HIP_SANITIZERS_SOURCE})
  endif()
endfunction()

function(uptempo_hip_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  uptempo_find_hipcc(REQUIRED)
  if(NOT TARGET uptempo::amdhip64)
    message(FATAL_ERROR "HIP was not found: install libamdhip64-dev (tools/check does), or configure without tests")
  endif()
  set(sources ${arg_SOURCES})
  set(hip_sources ${arg_SOURCES})
  list(FILTER sources EXCLUDE REGEX "[.]hip$")
  list(FILTER hip_sources INCLUDE REGEX "[.]hip$")
  uptempo_hip_objects(objects ${name} TARGETS ${UPTEMPO_VGPU_SUITE_TARGETS} SOURCES ${hip_sources})
  uptempo_executable(${name} ${sources} ${objects})
  uptempo_sanitize_with_hip(${name})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
  target_link_libraries(${name} PRIVATE uptempo_test_main ${arg_LIBRARIES} uptempo::amdhip64)
  add_dependencies(${name} uptempo_vgpu_launcher)
  _uptempo_devices(tests devices ${name} FALSE)
  foreach(test device IN ZIP_LISTS tests devices)
    add_test(NAME ${test} COMMAND uptempo_vgpu_launcher ${device} -- $<TARGET_FILE:${name}>)
    _uptempo_set_up_test(${test} vgpu)
  endforeach()
endfunction()

function(uptempo_vgpu_variant name suffix)
  add_test(NAME ${name}_${suffix} COMMAND uptempo_vgpu_launcher ${ARGN} -- $<TARGET_FILE:${name}>)
  _uptempo_set_up_test(${name}_${suffix} vgpu)
endfunction()

function(uptempo_long_cases name)
  get_test_property(${name} LABELS labels)
  get_property(on_device TARGET ${name} PROPERTY UPTEMPO_RUNS_ON_DEVICE)
  set(launcher "")
  if(on_device)
    set(launcher uptempo_vgpu_launcher --)
  endif()
  add_test(NAME ${name}_long COMMAND ${launcher} $<TARGET_FILE:${name}> [.long])
  _uptempo_set_up_test(${name}_long "${labels};long")
  set_tests_properties(${name}_long PROPERTIES TIMEOUT 1800)
endfunction()

function(uptempo_program_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;PROGRAMS;LIBRARIES;LABELS")
  uptempo_test(${name} SOURCES ${arg_SOURCES} LIBRARIES ${arg_LIBRARIES} LABELS ${arg_LABELS})
  foreach(program IN LISTS arg_PROGRAMS)
    string(REPLACE "=" ";" program ${program})
    list(GET program 0 macro)
    list(GET program 1 target)
    target_compile_definitions(${name} PRIVATE ${macro}="$<TARGET_FILE:${target}>")
    add_dependencies(${name} ${target})
  endforeach()
  add_dependencies(${name} uptempo_vgpu_launcher)
endfunction()

function(uptempo_checked_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ONE_DEVICE" "RULES" "COMMAND")
  if(NOT arg_RULES)
    set(arg_RULES fences)
  endif()
  _uptempo_devices(tests devices ${name}_checked "${arg_ONE_DEVICE}")
  foreach(test device IN ZIP_LISTS tests devices)
    add_test(NAME ${test} COMMAND uptempo_vgpu_launcher ${device} --check ${arg_RULES} --error-exitcode 99 -- ${arg_COMMAND})
    _uptempo_set_up_test(${test} vgpu)
    # A process that ends with _exit() or a signal: the checker writes each finding to stderr.
    set_tests_properties(${test} PROPERTIES FAIL_REGULAR_EXPRESSION "uptempo-vgpu: (unordered|stale|unreleased):")
  endforeach()
endfunction()

function(uptempo_memory_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "COMMAND;OPTIONS")
  add_test(NAME ${name}_memory_checked
           COMMAND uptempo_vgpu_launcher ${arg_OPTIONS} --check memory --error-exitcode 99 -- ${arg_COMMAND})
  _uptempo_set_up_test(${name}_memory_checked vgpu)
  # A process that ends with _exit() or a signal.
  set_tests_properties(${name}_memory_checked PROPERTIES
    FAIL_REGULAR_EXPRESSION "uptempo-vgpu: (out-of-bounds|use-after-free|freed-in-use|double-free|uninitialised-read|lds-out-of-bounds|lds-uninitialised-read|leak):")
endfunction()

function(uptempo_waits_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "COMMAND")
  add_test(NAME ${name}_waits COMMAND uptempo_vgpu_launcher --check fences,waits --error-exitcode 99 -- ${arg_COMMAND})
  _uptempo_set_up_test(${name}_waits vgpu)
  set_tests_properties(${name}_waits PROPERTIES FAIL_REGULAR_EXPRESSION "uptempo-vgpu: (unordered|stale|unreleased):")
endfunction()

# Kernels without races inside them.
function(uptempo_races_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "COMMAND;OPTIONS")
  add_test(NAME ${name}_races
           COMMAND uptempo_vgpu_launcher ${arg_OPTIONS} --check races --error-exitcode 99 -- ${arg_COMMAND})
  _uptempo_set_up_test(${name}_races vgpu)
  set_tests_properties(${name}_races PROPERTIES FAIL_REGULAR_EXPRESSION "uptempo-vgpu: race:|not checked completely")
endfunction()

# The seed follows the launcher's options.
function(_uptempo_seeds name options first last labels)
  list(JOIN options "\;" option)
  list(JOIN ARGN "\;" program)
  add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -DLAUNCHER=$<TARGET_FILE:uptempo_vgpu_launcher> -DOPTION=${option}
           -DFIRST=${first} -DLAST=${last} -DPROGRAM=${program} -P ${_UPTEMPO_EVERY_SEED})
  _uptempo_set_up_test(${name} "${labels}")
  # Each seed has a limit of its own (every_seed.cmake).
  math(EXPR seconds "900 * (${last} - ${first} + 1)")
  set_tests_properties(${name} PROPERTIES TIMEOUT ${seconds})
endfunction()

# The seeds 1 to `seeds`, and in long tests those up to `most` (empty: no long tests), 50 in each, so
# that many processors share them.
function(_uptempo_seed_test name options seeds most)
  _uptempo_seeds(${name} "${options}" 1 ${seeds} vgpu ${ARGN})
  if(most)
    math(EXPR first "${seeds} + 1")
    foreach(begin RANGE ${first} ${most} 50)
      math(EXPR end "${begin} + 49")
      if(end GREATER most)
        set(end ${most})
      endif()
      _uptempo_seeds(${name}_long_${begin} "${options}" ${begin} ${end} "vgpu;long" ${ARGN})
    endforeach()
  endif()
endfunction()

function(uptempo_incoherent_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ONE_DEVICE" "SEEDS;LONG" "COMMAND")
  if(UPTEMPO_SEEDS)
    set(arg_SEEDS ${UPTEMPO_SEEDS})
    set(arg_LONG "")
  endif()
  _uptempo_devices(tests devices ${name}_incoherent "${arg_ONE_DEVICE}")
  foreach(test device IN ZIP_LISTS tests devices)
    _uptempo_seed_test(${test} "${device};--incoherent" ${arg_SEEDS} "${arg_LONG}" ${arg_COMMAND})
  endforeach()
endfunction()

function(uptempo_lazy_bar_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "ONE_DEVICE" "SEEDS;LONG" "COMMAND")
  _uptempo_devices(tests devices ${name}_lazy_bar "${arg_ONE_DEVICE}")
  foreach(test device IN ZIP_LISTS tests devices)
    _uptempo_seed_test(${test} "${device};--bar=lazy" ${arg_SEEDS} "${arg_LONG}" ${arg_COMMAND})
  endforeach()
endfunction()

function(uptempo_delay_test name)
  if(NOT UPTEMPO_EVERYTHING)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SEEDS;LONG" "COMMAND")
  _uptempo_seed_test(${name}_delay --delay ${arg_SEEDS} "${arg_LONG}" ${arg_COMMAND})
endfunction()

function(uptempo_early_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SEEDS" "COMMAND")
  _uptempo_seed_test(${name}_early "--early-read-index;--seed" ${arg_SEEDS} "" ${arg_COMMAND})
endfunction()
