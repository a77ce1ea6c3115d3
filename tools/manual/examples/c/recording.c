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
  if (values[0] != 399 || values[n - 1] != 399) return 1;

  uptempo_kernel* spread;  // sums of both neighbours
  check(uptempo_kernel_create(program, "spread", NULL, &spread));
  uptempo_buffer* more;
  check(uptempo_buffer_create(gpu, UPTEMPO_MEMORY_PINNED, n * sizeof(uint32_t), NULL, &more));
  for (int i = 0; i < n; ++i) values[i] = 1;
  //! [swap]
  uint32_t *now = values, *next = uptempo_buffer_data(more);
  uptempo_recording* turn;
  check(uptempo_recording_create(queue, NULL, &turn));
  struct {
    uint32_t* next;
    const uint32_t* now;
  } sides = {next, now};
  size_t sums, grown;
  uptempo_access accesses[] = {{now, n * sizeof(uint32_t), 0}, {next, n * sizeof(uint32_t), 1}};
  uptempo_declaration declaration = {.size = sizeof declaration,
                                     .parts = UPTEMPO_DECLARES_ACCESSES,
                                     .accesses = accesses,
                                     .access_count = 2};
  check(
      uptempo_recording_dispatch(turn, spread, &grid, uptempo_packed(&sides, sizeof sides), &sums));
  check(uptempo_recording_declare(turn, sums, &declaration));
  arguments.values = next;
  arguments.addend = 1;
  accesses[0].data = next;  // it reads what it writes: two accesses
  check(uptempo_recording_dispatch(turn, advance, &grid, packed, &grown));
  check(uptempo_recording_declare(turn, grown, &declaration));
  for (int i = 0; i < 4; ++i) {
    check(uptempo_recording_replay(turn, queue, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done));
    uint32_t* const swapped = now;
    now = next;
    next = swapped;
    check(uptempo_recording_set(turn, sums, 0, &next, sizeof next));  // moves its accesses, too
    check(uptempo_recording_set(turn, sums, 1, &now, sizeof now));
    check(uptempo_recording_set(turn, grown, 0, &next, sizeof next));
  }
  check(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
  //! [swap]
  const int right = now[0] == 1555 && now[n - 1] == 1555;  // 1, 7, 43, 259, 1555
  printf("%s results\n", right ? "right" : "wrong");
  return right ? 0 : 1;
}
