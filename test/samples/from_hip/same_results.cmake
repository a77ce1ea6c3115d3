# Runs BEFORE and AFTER under LAUNCHER, and compares the checksums that they print.
foreach(program BEFORE AFTER)
  execute_process(COMMAND ${LAUNCHER} -- ${${program}} OUTPUT_VARIABLE output COMMAND_ECHO STDOUT ECHO_OUTPUT_VARIABLE
                  COMMAND_ERROR_IS_FATAL ANY)
  if(NOT output MATCHES "^checksum ([0-9a-f]+), ")
    message(FATAL_ERROR "${${program}} prints no checksum")
  endif()
  set(${program}_checksum ${CMAKE_MATCH_1})
endforeach()
if(NOT BEFORE_checksum STREQUAL AFTER_checksum)
  message(FATAL_ERROR "the checksums differ: ${BEFORE_checksum} and ${AFTER_checksum}")
endif()
