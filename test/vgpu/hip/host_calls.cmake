# Kernels that call the host while they run, under every check: the output is right, and there is no
# finding.
set(program ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/hip_host_calls)
foreach(way printf-1 printf-64 printf-1024 printf-blocks assert memory memory-freed mailbox polled-stores)
  foreach(check fences fences,hsa fences,waits races memory atomics)
    # Waves that get memory which others have freed are ordered by the host alone. Memory that no
    # kernel frees is a leak.
    if((way STREQUAL memory-freed AND check STREQUAL races) OR (way STREQUAL memory AND check STREQUAL memory))
      continue()
    endif()
    string(MAKE_C_IDENTIFIER ${way}_${check} name)
    set(test vgpu_hip_host_calls_${name})
    add_test(NAME ${test} COMMAND uptempo_vgpu_launcher --check ${check} --error-exitcode 99 -- ${program} ${way})
    set_tests_properties(${test} PROPERTIES LABELS vgpu FAIL_REGULAR_EXPRESSION
      "uptempo-vgpu: (unordered|stale|unreleased|race|same-value|leak|[a-z-]+-in-use|[a-z-]+-read|out-of-bounds|use-after-free|double-free):")
    if(way STREQUAL assert)
      set_tests_properties(${test} PROPERTIES PASS_REGULAR_EXPRESSION
        "host_calls.hip:[0-9]+: [^\n]*Device-side assertion `.value == 42' failed")
    endif()
  endforeach()
endforeach()
# A thread that is no part of the calls must wait, as before.
add_test(NAME vgpu_hip_host_calls_early
  COMMAND uptempo_vgpu_launcher --check fences --error-exitcode 99 -- ${program} early)
set_tests_properties(vgpu_hip_host_calls_early PROPERTIES LABELS vgpu PASS_REGULAR_EXPRESSION
  "uptempo-vgpu: unordered: [^\n]*hold[^\n]* writes 1 bytes from address [^\n]* which the host reads: [^\n]*\n.*: 1 finding .1 unordered.")
