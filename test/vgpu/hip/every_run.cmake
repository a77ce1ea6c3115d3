# Requires a race in each of TIMES dispatches of a program.
#
#   cmake -DLAUNCHER=... -DOPTIONS="--workers;3" -DTIMES=100 -DPROGRAM="program;argument;..."
#         -P every_run.cmake
execute_process(
  COMMAND ${LAUNCHER} ${OPTIONS} --check races,repeated --error-exitcode 99 -- ${PROGRAM} ${TIMES}
  RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(NOT status EQUAL 99)
  message(FATAL_ERROR "${PROGRAM} ended with ${status}\n${output}")
endif()
# The stream is not named of a packet that the device took before its doorbell was rung.
string(REGEX MATCHALL "uptempo-vgpu: race: [^\n]*[(, ]queue [0-9]+, packet [0-9]+[)]" found "${output}")
list(TRANSFORM found REPLACE ".*[(, ]queue" "queue")
list(REMOVE_DUPLICATES found)
list(LENGTH found count)
message(STATUS "${PROGRAM} with ${OPTIONS}: a race in ${count} of ${TIMES} dispatches")
if(NOT count EQUAL TIMES)
  message(FATAL_ERROR "${output}")
endif()
