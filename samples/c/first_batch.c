// The C interface in one screen: sort 32,768 keys with 120 dispatches, one doorbell and one
// completion signal.
//
//   first_batch_c [--device auto|hardware|virtual]
//
// Exit code: 0 sorted, 1 not sorted or the device failed, 2 wrong argument.
#include <stdio.h>
#include <uptempo/kernels/workgroups_of_256.h>

#include <uptempo/uptempo.h>
#include "samples/support/sample.h"

enum { kKeys = 32768 };

// Says why the last call failed.
static int failed(void) {
  fprintf(stderr, "first_batch_c: %s\n", uptempo_error()->message);
  return 0;
}

// The arguments of the kernel, as its metadata lays them out.
struct pass {
  uint32_t* keys;
  uint32_t stage, pass, ascending;
};

static int sort_keys(const char* device) {
  uptempo_runtime* runtime = NULL;
  const uptempo_agent* gpu = NULL;
  uptempo_program* program = NULL;
  uptempo_kernel* sort = NULL;
  uptempo_queue* queue = NULL;
  uptempo_batch* batch = NULL;
  uptempo_buffer* buffer = NULL;
  size_t code_bytes = 0;
  const void* const code = kernels_workgroups_of_256(&code_bytes);
  if (uptempo_runtime_create(NULL, &runtime) != UPTEMPO_OK ||
      uptempo_runtime_gpu(runtime, 0, &gpu) != UPTEMPO_OK ||
      uptempo_program_create(gpu, code, code_bytes, NULL, &program) != UPTEMPO_OK ||
      uptempo_kernel_create(program, "bitonic_sort", NULL, &sort) != UPTEMPO_OK ||
      uptempo_queue_create(gpu, NULL, &queue) != UPTEMPO_OK ||
      uptempo_batch_create(queue, NULL, &batch) != UPTEMPO_OK ||
      uptempo_buffer_create(gpu, UPTEMPO_MEMORY_PINNED, kKeys * sizeof(uint32_t), NULL, &buffer) !=
          UPTEMPO_OK)
    return failed();
  uint32_t* const keys = uptempo_buffer_data(buffer);
  for (uint32_t i = 0; i < kKeys; ++i) keys[i] = kKeys - 1 - i;

  const uptempo_grid grid = uptempo_grid_of(kKeys / 2, 256);
  struct pass arguments = {keys, 0, 0, 1};
  for (arguments.stage = 0; arguments.stage < 15; ++arguments.stage)
    for (arguments.pass = 0; arguments.pass <= arguments.stage; ++arguments.pass)
      if (uptempo_batch_dispatch(batch, sort, &grid,
                                 uptempo_packed(&arguments, sizeof arguments)) != UPTEMPO_OK)
        return failed();
  uptempo_completion done;  // 120 packets, 1 doorbell, 1 signal
  if (uptempo_batch_submit(batch, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done) != UPTEMPO_OK ||
      uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT) != UPTEMPO_OK)
    return failed();

  int sorted = 1;
  for (uint32_t i = 0; i < kKeys; ++i) sorted = sorted && keys[i] == i;
  printf("%s: %d keys %s by 120 dispatches\n", device, kKeys, sorted ? "sorted" : "left unsorted");
  uptempo_buffer_destroy(buffer);
  uptempo_batch_destroy(batch);
  uptempo_queue_destroy(queue);
  uptempo_kernel_destroy(sort);
  uptempo_program_destroy(program);
  uptempo_runtime_destroy(runtime);
  return sorted;
}

int main(int argc, char** argv) {
  return uptempo_run_sample("first_batch_c",
                            "Sorts 32,768 keys with 120 dispatches, one doorbell and one signal.",
                            argc, argv, sort_keys);
}
