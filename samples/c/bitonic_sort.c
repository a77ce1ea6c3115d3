// The sort of samples/bitonic_sort in C: 120 dependent kernels, submitted as a batch and replayed
// from a recording, 25 times each. Every result is compared with qsort's. In the last replays one
// argument of every node is changed, and the keys are sorted the other way round.
#define _GNU_SOURCE  // RTLD_DEFAULT
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <uptempo/kernels/workgroups_of_256.h>
#include <uptempo/uptempo.h>

enum { kKeys = 32768, kStages = 15, kKernels = 120, kIterations = 25 };

// The arguments of the kernel, as its metadata lays them out. The last one has number 3.
struct pass {
  uint32_t* keys;
  uint32_t stage, pass, ascending;
};
enum { kAscendingArgument = 3 };

struct sorter {
  uptempo_runtime* runtime;
  const uptempo_agent* gpu;
  uptempo_program* program;
  uptempo_kernel* kernel;
  uptempo_queue* queue;
  uptempo_batch* batch;
  uptempo_recording* recording;
  uptempo_buffer* keys;  // the GPU's memory
  uptempo_buffer* host;  // pinned
  uptempo_copier* copier;
};

// Ends the function if a call fails; the caller of the outermost one reports it.
#define TRY(call)                                            \
  do {                                                       \
    const uptempo_status status_of_call = (call);            \
    if (status_of_call != UPTEMPO_OK) return status_of_call; \
  } while (0)

static uptempo_status open_sorter(struct sorter* sorter) {
  size_t code_bytes = 0;
  const void* const code = kernels_workgroups_of_256(&code_bytes);
  const size_t bytes = kKeys * sizeof(uint32_t);
  TRY(uptempo_runtime_create(NULL, &sorter->runtime));
  TRY(uptempo_runtime_gpu(sorter->runtime, 0, &sorter->gpu));
  TRY(uptempo_program_create(sorter->gpu, code, code_bytes, NULL, &sorter->program));
  TRY(uptempo_kernel_create(sorter->program, "bitonic_sort", NULL, &sorter->kernel));
  TRY(uptempo_queue_create(sorter->gpu, NULL, &sorter->queue));
  TRY(uptempo_batch_create(sorter->queue, NULL, &sorter->batch));
  TRY(uptempo_recording_create(sorter->queue, NULL, &sorter->recording));
  TRY(uptempo_buffer_create(sorter->gpu, UPTEMPO_MEMORY_DEVICE, bytes, NULL, &sorter->keys));
  TRY(uptempo_buffer_create(sorter->gpu, UPTEMPO_MEMORY_PINNED, bytes, NULL, &sorter->host));
  return uptempo_copier_create(sorter->gpu, &sorter->copier);
}

// In any order, and also after open_sorter() has failed: NULL is harmless.
static void close_sorter(struct sorter* sorter) {
  uptempo_copier_destroy(sorter->copier);
  uptempo_buffer_destroy(sorter->host);
  uptempo_buffer_destroy(sorter->keys);
  uptempo_recording_destroy(sorter->recording);
  uptempo_batch_destroy(sorter->batch);
  uptempo_queue_destroy(sorter->queue);
  uptempo_kernel_destroy(sorter->kernel);
  uptempo_program_destroy(sorter->program);
  uptempo_runtime_destroy(sorter->runtime);
}

// Calls `dispatch` for the kernels of one sort, in order.
static uptempo_status for_each_pass(struct sorter* sorter,
                                    uptempo_status (*dispatch)(struct sorter* sorter,
                                                               uptempo_arguments arguments)) {
  struct pass arguments = {uptempo_buffer_data(sorter->keys), 0, 0, 1};
  for (arguments.stage = 0; arguments.stage < kStages; ++arguments.stage)
    for (arguments.pass = 0; arguments.pass <= arguments.stage; ++arguments.pass)
      TRY(dispatch(sorter, uptempo_packed(&arguments, sizeof arguments)));
  return UPTEMPO_OK;
}

static uptempo_status add_to_batch(struct sorter* sorter, uptempo_arguments arguments) {
  const uptempo_grid grid = uptempo_grid_of(kKeys / 2, 256);
  return uptempo_batch_dispatch(sorter->batch, sorter->kernel, &grid, arguments);
}

static uptempo_status add_to_recording(struct sorter* sorter, uptempo_arguments arguments) {
  const uptempo_grid grid = uptempo_grid_of(kKeys / 2, 256);
  return uptempo_recording_dispatch(sorter->recording, sorter->kernel, &grid, arguments, NULL);
}

// Submits one sort, and returns its completion.
static uptempo_status submit_batch(struct sorter* sorter, uptempo_completion* done) {
  TRY(for_each_pass(sorter, add_to_batch));
  return uptempo_batch_submit(sorter->batch, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, done);
}

static uptempo_status replay(struct sorter* sorter, uptempo_completion* done) {
  return uptempo_recording_replay(sorter->recording, sorter->queue, UPTEMPO_NO_LIMIT, UPTEMPO_HERE,
                                  done);
}

static int by_value(const void* a, const void* b) {
  const uint32_t left = *(const uint32_t*)a, right = *(const uint32_t*)b;
  return left < right ? -1 : left > right;
}

static double now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static int by_time(const void* a, const void* b) {
  const double left = *(const double*)a, right = *(const double*)b;
  return left < right ? -1 : left > right;
}

// Sorts the keys kIterations times, and prints the median time of submission and wait. `wrong` gets
// the number of results that differ from `expected`.
static uptempo_status measure(struct sorter* sorter, const char* way,
                              uptempo_status (*submit)(struct sorter* sorter,
                                                       uptempo_completion* done),
                              const uint32_t* keys, const uint32_t* expected, int* wrong) {
  const size_t bytes = kKeys * sizeof(uint32_t);
  uint32_t* const host = uptempo_buffer_data(sorter->host);
  const uptempo_range on_host = uptempo_pinned(host, bytes);
  const uptempo_range on_device = uptempo_device(uptempo_buffer_data(sorter->keys), bytes);
  double us[kIterations];
  *wrong = 0;
  for (int i = 0; i < kIterations; ++i) {
    memcpy(host, keys, bytes);
    TRY(uptempo_copier_copy(sorter->copier, on_device, on_host));
    uptempo_completion done;
    const double begin = now_us();
    TRY(submit(sorter, &done));
    TRY(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
    us[i] = now_us() - begin;
    memset(host, 0xCC, bytes);
    TRY(uptempo_copier_copy(sorter->copier, on_host, on_device));
    *wrong += memcmp(host, expected, bytes) != 0;
  }
  qsort(us, kIterations, sizeof *us, by_time);
  printf("%-22s %8.1f us, %d of %d right\n", way, us[kIterations / 2], kIterations - *wrong,
         kIterations);
  return UPTEMPO_OK;
}

static uptempo_status run(struct sorter* sorter, const uint32_t* keys, uint32_t* expected,
                          int* wrong) {
  int wrong_by_way[3];
  TRY(open_sorter(sorter));
  TRY(measure(sorter, "batch", submit_batch, keys, expected, &wrong_by_way[0]));
  TRY(for_each_pass(sorter, add_to_recording));
  TRY(measure(sorter, "replay", replay, keys, expected, &wrong_by_way[1]));
  const uint32_t ascending = 0;
  for (size_t node = 0; node < kKernels; ++node)
    TRY(uptempo_recording_set(sorter->recording, node, kAscendingArgument, &ascending,
                              sizeof ascending));
  for (size_t i = 0; i < kKeys / 2; ++i) {
    const uint32_t last = expected[kKeys - 1 - i];
    expected[kKeys - 1 - i] = expected[i];
    expected[i] = last;
  }
  TRY(measure(sorter, "replay, descending", replay, keys, expected, &wrong_by_way[2]));
  *wrong = wrong_by_way[0] + wrong_by_way[1] + wrong_by_way[2];
  return UPTEMPO_OK;
}

int main(void) {
  const int is_virtual = dlsym(RTLD_DEFAULT, "uptempo_vgpu_device") != NULL;
  printf("%d keys, %d kernels; host time until complete, median of %d%s\n", kKeys, kKernels,
         kIterations, is_virtual ? " (virtual GPU: no time of hardware)" : "");
  static uint32_t keys[kKeys], expected[kKeys];
  uint64_t random = 1;
  for (size_t i = 0; i < kKeys; ++i) {
    random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);  // Knuth, MMIX
    keys[i] = (uint32_t)(random >> 32);
  }
  memcpy(expected, keys, sizeof keys);
  qsort(expected, kKeys, sizeof *expected, by_value);

  struct sorter sorter = {0};
  int wrong = 0;
  const uptempo_status status = run(&sorter, keys, expected, &wrong);
  if (status != UPTEMPO_OK)
    fprintf(stderr, "bitonic_sort_c: %s: %s\n", uptempo_status_name(status),
            uptempo_error()->message);
  close_sorter(&sorter);
  return status == UPTEMPO_OK && wrong == 0 ? 0 : 1;
}
