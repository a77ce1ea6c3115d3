# uptempo_find_hipcc finds a hipcc that works for AMD GPUs beside a CUDA toolkit, and passes on the
# message of one that does not. PLACE is a folder of the test's own, TREE the source tree.
#
# The script starts itself with CASE, where the call is the whole of it.
if(CASE)
  include(${TREE}/tools/cmake/UptempoHip.cmake)
  uptempo_find_hipcc(REQUIRED)
  execute_process(COMMAND ${UPTEMPO_HIPCC_COMMAND} hello OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
  message(STATUS "found: ${said}")
  return()
endif()

file(REMOVE_RECURSE ${PLACE})
file(MAKE_DIRECTORY ${PLACE})
# Chooses its platform as hipcc does (hipcc 5.2.3, hipvars.pm).
file(WRITE ${PLACE}/hipcc [=[#!/bin/sh
case "${HIP_PLATFORM:-nvidia}" in
  amd) echo "compiling for AMD GPUs" ;;
  *) echo "nvcc fatal: unknown option" >&2; exit 1 ;;
esac
]=])
file(WRITE ${PLACE}/broken "#!/bin/sh\necho 'no device libraries of ROCm here' >&2\nexit 1\n")
file(CHMOD ${PLACE}/hipcc ${PLACE}/broken PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)

function(expect case hipcc expected)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env --unset=HIP_PLATFORM
                          ${CMAKE_COMMAND} -DCASE=${case} -DTREE=${TREE} -DUPTEMPO_HIPCC=${hipcc} -P ${CMAKE_SCRIPT_MODE_FILE}
    WORKING_DIRECTORY ${PLACE} OUTPUT_VARIABLE output ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  if(NOT output MATCHES "${expected}")
    message(FATAL_ERROR "${case}: expected '${expected}', but the output is:\n${output}")
  endif()
endfunction()
expect(beside_nvcc ${PLACE}/hipcc "found: compiling for AMD GPUs")
expect(broken ${PLACE}/broken "broken cannot make a library for an AMD GPU; it said: no device libraries of ROCm here")
