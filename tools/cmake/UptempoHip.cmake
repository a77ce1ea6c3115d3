# Compiles HIP programs with hipcc.
#
#   uptempo_find_hipcc([REQUIRED])
#       Sets UPTEMPO_HIPCC_WORKS: whether hipcc makes a library for an AMD GPU. If so, sets
#       UPTEMPO_HIPCC_COMMAND, the command (a list) that runs it. If not, sets UPTEMPO_HIPCC_PROBLEM,
#       a sentence with hipcc's own message, which ends the configuration if REQUIRED is given.
#       Debian's package hipcc lacks HIP's headers and library, which are in libamdhip64-dev.
#       The variable UPTEMPO_HIPCC of the cache names another hipcc.
#   uptempo_hip_objects(<variable> <target> TARGETS <gpu>... SOURCES <file>...)
#       Sets the variable to the objects that hipcc makes of the sources for these GPUs, with the
#       include directories and definitions of <target>, and warnings as errors if UPTEMPO_WERROR.
#       Sanitizers are not used. <target> may be added later, with the objects among its sources;
#       it needs uptempo::amdhip64 and the property LINKER_LANGUAGE CXX.
include_guard(GLOBAL)
include(${CMAKE_CURRENT_LIST_DIR}/UptempoHsa.cmake)

# Without HIP_PLATFORM, hipcc compiles for NVIDIA's platform where it finds an nvcc.
function(uptempo_find_hipcc)
  cmake_parse_arguments(PARSE_ARGV 0 arg REQUIRED "" "")
  find_program(UPTEMPO_HIPCC hipcc HINTS ${UPTEMPO_ROCM_ROOTS} PATH_SUFFIXES bin)
  set(UPTEMPO_HIPCC_COMMAND ${CMAKE_COMMAND} -E env HIP_PLATFORM=amd ${UPTEMPO_HIPCC} CACHE INTERNAL "")
  if(NOT UPTEMPO_HIPCC)
    set(UPTEMPO_HIPCC_WORKS FALSE CACHE INTERNAL "")
    set(problem "hipcc was not found")
  elseif(NOT UPTEMPO_HIPCC_WORKS OR NOT UPTEMPO_HIPCC STREQUAL "${UPTEMPO_HIPCC_TRIED}")
    set(trial ${CMAKE_BINARY_DIR}/CMakeFiles/hip_trial)
    file(WRITE ${trial}.hip "#include <hip/hip_runtime.h>\nextern \"C\" hipError_t trial() { return hipInit(0); }\n")
    execute_process(COMMAND ${UPTEMPO_HIPCC_COMMAND} -fPIC -shared --offload-arch=gfx90a ${trial}.hip -o ${trial}.so
      RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
    if(status EQUAL 0)
      set(UPTEMPO_HIPCC_WORKS TRUE CACHE INTERNAL "")
      set(UPTEMPO_HIPCC_TRIED ${UPTEMPO_HIPCC} CACHE INTERNAL "The compiler that UPTEMPO_HIPCC_WORKS holds for")
    else()  # not remembered: a package may be installed later
      set(UPTEMPO_HIPCC_WORKS FALSE CACHE INTERNAL "")
      string(STRIP "${output}" output)
      set(problem "${UPTEMPO_HIPCC} cannot make a library for an AMD GPU; it said: ${output}")
    endif()
  endif()
  if(NOT UPTEMPO_HIPCC_WORKS)
    string(APPEND problem "\nInstall hipcc and libamdhip64-dev (Debian; tools/check does)")
    if(arg_REQUIRED)
      message(FATAL_ERROR "${problem}, or configure without tests.")
    endif()
    set(UPTEMPO_HIPCC_PROBLEM "${problem}." PARENT_SCOPE)
  endif()
endfunction()

function(uptempo_hip_objects variable target)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "TARGETS;SOURCES")
  list(TRANSFORM arg_TARGETS PREPEND --offload-arch= OUTPUT_VARIABLE targets)
  set(warnings -Wall -Wextra)
  if(UPTEMPO_WERROR)
    list(APPEND warnings -Werror)
  endif()
  set(definitions "$<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>")
  set(objects "")
  foreach(source IN LISTS arg_SOURCES)
    string(MAKE_C_IDENTIFIER ${source} identifier)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}_${identifier}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${UPTEMPO_HIPCC_COMMAND} -std=c++20 -O2 ${warnings} ${targets}
              "-I$<JOIN:$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>,;-I>"
              "$<$<BOOL:${definitions}>:-D$<JOIN:${definitions},;-D>>"
              -c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object} -MD -MF ${object}.d
      DEPENDS ${source}
      DEPFILE ${object}.d
      COMMENT "hipcc ${source}"
      COMMAND_EXPAND_LISTS VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set(${variable} "${objects}" PARENT_SCOPE)
endfunction()
