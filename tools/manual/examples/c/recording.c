// Records dispatches once in C, replays them, and patches an argument between replays.
#include <stdio.h>
#include <uptempo/kernels/steps.h>

#include "check.h"

int main(void) {
  enum { n = 256 };
  uptempo_runtime* runtime;
  const uptempo_agent* gpu;
  uptempo_program* program;
  uptempo_kernel* advance;
  uptempo_queue* queue;
  uptempo_buffer* buffer;
  size_t code_bytes;
  const void* code = kernels_steps(&code_bytes);
  check(uptempo_runtime_create(NULL, &runtime));
  check(uptempo_runtime_gpu(runtime, 0, &gpu));
  check(uptempo_program_create(gpu, code, code_bytes, NULL, &program));
  check(uptempo_kernel_create(program, "advance", NULL, &advance));  // values = 3 values + addend
  check(uptempo_queue_create(gpu, NULL, &queue));
  check(uptempo_buffer_create(gpu, UPTEMPO_MEMORY_PINNED, n * sizeof(uint32_t), NULL, &buffer));
  uint32_t* values = uptempo_buffer_data(buffer);
  for (int i = 0; i < n; ++i) values[i] = 0;

  //! [record]
  uptempo_recording* step;
  check(uptempo_recording_create(queue, NULL, &step));
  struct {
    uint32_t* values;
    uint32_t addend;
  } arguments = {values, 1};
  const uptempo_arguments packed = uptempo_packed(&arguments, sizeof arguments);
  const uptempo_grid grid = uptempo_grid_of(n, 64);
  size_t first, second;
  check(uptempo_recording_dispatch(step, advance, &grid, packed, &first));
  check(uptempo_recording_dispatch(step, advance, &grid, packed, &second));
  uptempo_completion done;
  check(uptempo_recording_replay(step, queue, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done));
  check(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));  // 0 becomes 4
  //! [record]
  if (values[0] != 4) return 1;

  //! [patch]
  uint32_t addend = 5;  // argument 1; from the next replay on
  check(uptempo_recording_set(step, second, 1, &addend, sizeof addend));
  check(uptempo_recording_replay(step, queue, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done));
  addend = 0;  // the replay in flight keeps its 5
  check(uptempo_recording_set(step, second, 1, &addend, sizeof addend));
  check(uptempo_recording_replay(step, queue, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done));
  check(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
  //! [patch]
  printf("%s results\n", values[0] == 399 && values[n - 1] == 399 ? "right" : "wrong");
  return values[0] == 399 && values[n - 1] == 399 ? 0 : 1;
}
