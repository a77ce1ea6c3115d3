# Included by consume.cmake: each folder of SAMPLES is a project that builds and runs with the
# installed package alone. All its programs and scripts run, without arguments.
string(REPLACE "," ";" samples "${SAMPLES}")
file(COPY ${prefix}/${DOCDIR}/samples DESTINATION ${place})
find_program(PYTHON3 python3 REQUIRED)
# Sanitizers look for leaks in test/samples, where they know those of HIP and MPI.
set(vgpu ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0:use_sigaltstack=0:intercept_tls_get_addr=0
    LD_LIBRARY_PATH=${prefix}/${LIBDIR} ${prefix}/bin/uptempo-vgpu --gpus 2 --)
foreach(sample IN LISTS samples)
  set(build ${place}/build/${sample})
  # Quickly: they run once.
  run(${CMAKE_COMMAND} -S ${place}/samples/${sample} -B ${build} -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${prefix}
      -DGPU_TARGETS=gfx90a -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=-O0 ${settings})
  run(${CMAKE_COMMAND} --build ${build})
  set(ran 0)
  file(GLOB files ${build}/*)
  foreach(file IN LISTS files)
    execute_process(COMMAND test -f ${file} -a -x ${file} RESULT_VARIABLE is_data)
    if(is_data EQUAL 0)
      run(${vgpu} ${file})
      math(EXPR ran "${ran} + 1")
    endif()
  endforeach()
  if(ran EQUAL 0)
    message(FATAL_ERROR "samples/${sample} has no program")
  endif()
  file(GLOB scripts ${place}/samples/${sample}/*.py)
  if(scripts AND NOT sanitizers)  # Python has no runtime of a sanitizer
    foreach(script IN LISTS scripts)
      run(${vgpu} ${PYTHON3} ${script})
    endforeach()
  endif()
endforeach()
