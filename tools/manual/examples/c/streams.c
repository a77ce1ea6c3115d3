// Two streams in C: copies and kernels in the order of an event.
#include <stdio.h>
#include <uptempo/kernels/steps.h>

#include "check.h"

int main(void) {
  enum { n = 256, bytes = n * sizeof(uint32_t) };
  uptempo_runtime* runtime;
  const uptempo_agent* gpu;
  uptempo_program* program;
  uptempo_kernel* advance;
  uptempo_buffer* buffer;
  size_t code_bytes;
  const void* code = kernels_steps(&code_bytes);
  check(uptempo_runtime_create(NULL, &runtime));
  check(uptempo_runtime_gpu(runtime, 0, &gpu));
  check(uptempo_program_create(gpu, code, code_bytes, NULL, &program));
  check(uptempo_kernel_create(program, "advance", NULL, &advance));  // values = 3 values + addend
  check(uptempo_buffer_create(gpu, UPTEMPO_MEMORY_DEVICE, bytes, NULL, &buffer));
  uint32_t* values = uptempo_buffer_data(buffer);
  uint32_t host[n];
  for (int i = 0; i < n; ++i) host[i] = (uint32_t)i;

  //! [streams]
  uptempo_streams* streams;
  uptempo_stream *upload, *compute;
  uptempo_event* uploaded;
  check(uptempo_streams_create(gpu, NULL, &streams));
  check(uptempo_stream_create(streams, NULL, &upload));
  check(uptempo_stream_create(streams, NULL, &compute));
  check(uptempo_event_create(NULL, &uploaded));

  check(uptempo_stream_copy(upload, uptempo_device(values, bytes), uptempo_pageable(host, bytes),
                            UPTEMPO_PATH_AUTOMATIC, NULL));
  check(uptempo_stream_record(upload, uploaded));
  check(uptempo_stream_after(compute, uploaded));  // the device waits, not the host
  struct {
    uint32_t* values;
    uint32_t addend;
  } arguments = {values, 1};
  uptempo_grid grid = uptempo_grid_of(n, 64);
  check(uptempo_stream_launch(compute, advance, &grid, uptempo_packed(&arguments, sizeof arguments),
                              UPTEMPO_HERE));
  check(uptempo_stream_copy(compute, uptempo_pageable(host, bytes), uptempo_device(values, bytes),
                            UPTEMPO_PATH_AUTOMATIC, NULL));
  check(uptempo_stream_synchronize(compute, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
  //! [streams]
  for (uint32_t i = 0; i < n; ++i) {
    if (host[i] == 3 * i + 1) continue;
    printf("value %u is %u, not %u\n", i, host[i], 3 * i + 1);
    return 1;
  }
  printf("right results\n");
  uptempo_event_destroy(uploaded);
  uptempo_stream_destroy(upload);
  uptempo_stream_destroy(compute);
  uptempo_streams_destroy(streams);
  uptempo_buffer_destroy(buffer);
  uptempo_kernel_destroy(advance);
  uptempo_program_destroy(program);
  uptempo_runtime_destroy(runtime);
  return 0;
}
