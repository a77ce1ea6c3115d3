# Requires the program to succeed with each seed. Prints all failed seeds and the first output.
#
#   cmake -DLAUNCHER=... -DOPTION=--incoherent -DFIRST=1 -DLAST=20 -DPROGRAM="program;argument;..."
#         -P every_seed.cmake
set(failed "")
foreach(seed RANGE ${FIRST} ${LAST})
  execute_process(COMMAND ${LAUNCHER} ${OPTION} ${seed} -- ${PROGRAM}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output TIMEOUT 900)  # for a hang
  if(NOT status EQUAL 0)
    if(NOT failed)
      set(first_output "${output}")
    endif()
    list(APPEND failed "${seed} (${status})")
  endif()
endforeach()
if(failed)
  message(FATAL_ERROR
    "${PROGRAM} failed with ${OPTION} for these seeds (exit status): ${failed}\n${first_output}")
endif()
