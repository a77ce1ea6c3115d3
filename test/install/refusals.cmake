# Included by consume.cmake: builds refusals/ against the package, and checks what is refused, and
# with which message.
set(refusals ${CMAKE_CURRENT_LIST_DIR}/refusals)
set(configure_refusals ${CMAKE_COMMAND} -S ${refusals} -B ${place}/refusals -G ${GENERATOR} -DCMAKE_PREFIX_PATH=${prefix})

# Two files of one target that would have the same header.
foreach(case one_call two_calls two_namespaces)
  run_refused(COMMAND ${configure_refusals} -DCASE=${case}
              EXPECT "refusals/util\\.cl and [^ ]*refusals/other/util\\.cl would both have the header uptempo/kernels/util\\.hpp")
endforeach()
run_refused(COMMAND ${configure_refusals} -DCASE=two_extensions
            EXPECT "refusals/util\\.cl and [^ ]*refusals/util\\.fast\\.cl would both have the header uptempo/kernels/util\\.hpp")
run_refused(COMMAND ${configure_refusals} -DCASE=letter_case
            EXPECT "refusals/util\\.cl and [^ ]*refusals/other/Util\\.cl .* differ only in case")
run_refused(COMMAND ${configure_refusals} -DCASE=twice EXPECT "refusals/util\\.cl is named twice")
run_refused(COMMAND ${configure_refusals} -DCASE=like_targets EXPECT "targets 'my-library' and 'my_library' would share")
run_refused(COMMAND ${configure_refusals} -DCASE=no_hip
            EXPECT "calls_host\\.hip needs HIP's headers, and UPTEMPO_HIP_ROOT, [^ ]*refusals/other, has no include/hip")
run_refused(COMMAND ${configure_refusals} -DCASE=other_directory EXPECT "call it in the directory that adds the target")
run_refused(COMMAND ${configure_refusals} -DCASE=without_cxx EXPECT "add CXX to the LANGUAGES of project")

run(${configure_refusals} -DCASE=)
set(build_refusals ${CMAKE_COMMAND} --build ${place}/refusals --target)
run_refused(COMMAND ${build_refusals} ambiguous
            EXPECT "ambiguous" "left\\.kernels/include/uptempo/kernels/util\\.hpp"
                   "right\\.kernels/include/uptempo/kernels/util\\.hpp")

# clang 15 and 16 report the place of the call, newer ones the kernel.
foreach(way call macro helper builtin)
  set(place_of_call "printf_by_${way}\\.cl:[34]:")
  if(way STREQUAL "helper")
    set(place_of_call "print_helper\\.h:1:")
  endif()
  run_refused(COMMAND ${build_refusals} printf_by_${way}
              EXPECT "printf_by_${way}\\.cl" "printf \\(Uptempo cannot print from a kernel: write the values to a buffer"
                     "${place_of_call}|referenced by [^ ]*:\\(noisy\\)")
endforeach()
run(${build_refusals} accepted_unused accepted_taken_out)
