# AMD's ROCm, in the folder that the environment names, is found before the distribution's, which is
# installed, too. PLACE is a folder of the test's own, TREE the source tree, GENERATOR CMake's.
set(rocm ${PLACE}/rocm)
file(REMOVE_RECURSE ${PLACE})
file(MAKE_DIRECTORY ${rocm}/include/hsa)
file(WRITE ${rocm}/lib/cmake/hsa-runtime64/hsa-runtime64-config.cmake "
add_library(hsa-runtime64::hsa-runtime64 SHARED IMPORTED)
set_target_properties(hsa-runtime64::hsa-runtime64 PROPERTIES IMPORTED_LOCATION ${rocm}/lib/libhsa-runtime64.so
                      INTERFACE_INCLUDE_DIRECTORIES ${rocm}/include)
")
foreach(name include/hsa/hsa.h include/hip/hip_runtime_api.h lib/libamdhip64.so lib/libhsa-runtime64.so)
  file(WRITE ${rocm}/${name} "")
endforeach()
file(WRITE ${rocm}/bin/hipcc "#!/bin/sh\n")
file(CHMOD ${rocm}/bin/hipcc PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
file(WRITE ${PLACE}/project/CMakeLists.txt "
cmake_minimum_required(VERSION 3.22)
project(finds LANGUAGES CXX)
include(${TREE}/tools/cmake/UptempoHip.cmake)
include(${TREE}/tools/cmake/UptempoHsa.cmake)
uptempo_find_hsa()
uptempo_find_hip()
uptempo_find_hipcc(REQUIRED)
get_target_property(rocr hsa-runtime64::hsa-runtime64 IMPORTED_LOCATION)
get_target_property(headers hsa-runtime64::hsa-runtime64 INTERFACE_INCLUDE_DIRECTORIES)
get_target_property(hip uptempo::amdhip64 IMPORTED_LOCATION)
get_target_property(hip_headers uptempo::amdhip64 INTERFACE_INCLUDE_DIRECTORIES)
message(STATUS \"found: \${rocr} \${headers} \${hip} \${hip_headers} \${UPTEMPO_HIPCC}\")
")
execute_process(COMMAND ${CMAKE_COMMAND} -E env ROCM_PATH=${rocm}
                        ${CMAKE_COMMAND} -S ${PLACE}/project -B ${PLACE}/build -G ${GENERATOR}
  OUTPUT_VARIABLE output ERROR_VARIABLE output)
set(expected "found: ${rocm}/lib/libhsa-runtime64.so ${rocm}/include ${rocm}/lib/libamdhip64.so ${rocm}/include ${rocm}/bin/hipcc\n")
string(FIND "${output}" "${expected}" at)
if(at EQUAL -1)
  message(FATAL_ERROR "expected '${expected}', but the output is:\n${output}")
endif()
