// The C interface in one screen: sort 32,768 keys with 120 dispatches, one doorbell and one
// completion signal.
#include <stdio.h>
#include <uptempo/kernels/workgroups_of_256.h>
#include <uptempo/uptempo.h>

enum { kKeys = 32768 };

// The arguments of the kernel, as its metadata lays them out.
struct pass {
  uint32_t* keys;
  uint32_t stage, pass, ascending;
};

struct sorter {
  uptempo_runtime* runtime;
  const uptempo_agent* gpu;
  uptempo_program* program;
  uptempo_kernel* sort;
  uptempo_queue* queue;
  uptempo_batch* batch;
  uptempo_buffer* buffer;
};

static int open_sorter(struct sorter* with, uptempo_agent_info* info) {
  size_t code_bytes = 0;
  const void* const code = kernels_workgroups_of_256(&code_bytes);
  return uptempo_runtime_create(NULL, &with->runtime) == UPTEMPO_OK &&
         uptempo_runtime_gpu(with->runtime, 0, &with->gpu) == UPTEMPO_OK &&
         uptempo_agent_get_info(with->gpu, info) == UPTEMPO_OK &&
         uptempo_program_create(with->gpu, code, code_bytes, NULL, &with->program) == UPTEMPO_OK &&
         uptempo_kernel_create(with->program, "bitonic_sort", NULL, &with->sort) == UPTEMPO_OK &&
         uptempo_queue_create(with->gpu, NULL, &with->queue) == UPTEMPO_OK &&
         uptempo_batch_create(with->queue, NULL, &with->batch) == UPTEMPO_OK &&
         uptempo_buffer_create(with->gpu, UPTEMPO_MEMORY_PINNED, kKeys * sizeof(uint32_t), NULL,
                               &with->buffer) == UPTEMPO_OK;
}

// Also after open_sorter() has failed: NULL is harmless. The queue waits for its work first.
static void close_sorter(struct sorter* with) {
  uptempo_batch_destroy(with->batch);
  uptempo_queue_destroy(with->queue);
  uptempo_buffer_destroy(with->buffer);
  uptempo_kernel_destroy(with->sort);
  uptempo_program_destroy(with->program);
  uptempo_runtime_destroy(with->runtime);
}

static int run(struct sorter* with, uint32_t* keys) {
  const uptempo_grid grid = uptempo_grid_of(kKeys / 2, 256);
  struct pass arguments = {keys, 0, 0, 1};
  for (arguments.stage = 0; arguments.stage < 15; ++arguments.stage)
    for (arguments.pass = 0; arguments.pass <= arguments.stage; ++arguments.pass)
      if (uptempo_batch_dispatch(with->batch, with->sort, &grid,
                                 uptempo_packed(&arguments, sizeof arguments)) != UPTEMPO_OK)
        return 0;
  uptempo_completion done;  // 120 packets, 1 doorbell, 1 signal
  return uptempo_batch_submit(with->batch, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done) == UPTEMPO_OK &&
         uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT) == UPTEMPO_OK;
}

int main(void) {
  struct sorter with = {0};
  uptempo_agent_info gpu = {.size = sizeof gpu};
  int sorted = open_sorter(&with, &gpu);
  uint32_t* const keys = sorted ? uptempo_buffer_data(with.buffer) : NULL;
  if (sorted) {
    for (uint32_t i = 0; i < kKeys; ++i) keys[i] = kKeys - 1 - i;
    sorted = run(&with, keys);
  }
  if (sorted) {
    for (uint32_t i = 0; i < kKeys; ++i) sorted = sorted && keys[i] == i;
    printf("%s: %d keys %s by 120 dispatches\n", gpu.name, kKeys,
           sorted ? "sorted" : "left unsorted");
  } else {
    fprintf(stderr, "first_batch_c: %s\n", uptempo_error()->message);
  }
  close_sorter(&with);
  return sorted ? 0 : 1;
}
