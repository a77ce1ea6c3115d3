// SAXPY on a GPU in C: y += a x, compared with the host's result.
#include <stdio.h>
#include <uptempo/kernels/saxpy.h>  // made from saxpy.cl by uptempo_add_kernels

#include <uptempo/uptempo.h>

// Returns from main() with the reason if a call fails.
#define CHECK(call)                                             \
  do {                                                          \
    if ((call) != UPTEMPO_OK) {                                 \
      fprintf(stderr, "saxpy: %s\n", uptempo_error()->message); \
      return 1;                                                 \
    }                                                           \
  } while (0)

int main(void) {
  enum { n = 1000 };
  uptempo_runtime* runtime;
  const uptempo_agent* gpu;
  CHECK(uptempo_runtime_create(NULL, &runtime));
  CHECK(uptempo_runtime_gpu(runtime, 0, &gpu));

  size_t code_bytes;
  const void* code = kernels_saxpy(&code_bytes);
  uptempo_program* program;
  uptempo_kernel* saxpy;
  CHECK(uptempo_program_create(gpu, code, code_bytes, NULL, &program));
  CHECK(uptempo_kernel_create(program, "saxpy", NULL, &saxpy));

  uptempo_buffer *x_buffer, *y_buffer;  // host memory that the GPU reaches, too
  CHECK(uptempo_buffer_create(gpu, UPTEMPO_MEMORY_PINNED, n * sizeof(float), NULL, &x_buffer));
  CHECK(uptempo_buffer_create(gpu, UPTEMPO_MEMORY_PINNED, n * sizeof(float), NULL, &y_buffer));
  float *x = uptempo_buffer_data(x_buffer), *y = uptempo_buffer_data(y_buffer);
  for (int i = 0; i < n; ++i) x[i] = (float)i, y[i] = 1;

  uptempo_queue* queue;
  uptempo_batch* batch;
  CHECK(uptempo_queue_create(gpu, NULL, &queue));
  CHECK(uptempo_batch_create(queue, NULL, &batch));
  struct {
    float* y;
    const float* x;
    float a;
    uint32_t n;
  } arguments = {y, x, 2, n};  // the kernel's parameters, in their order
  uptempo_grid grid = uptempo_grid_of(n, 256);
  CHECK(uptempo_batch_dispatch(batch, saxpy, &grid, uptempo_packed(&arguments, sizeof arguments)));
  uptempo_completion done;
  CHECK(uptempo_batch_submit(batch, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done));
  CHECK(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));

  for (int i = 0; i < n; ++i) {
    if (y[i] == 1 + 2 * (float)i) continue;
    printf("y[%d] is %g, not %g\n", i, y[i], 1 + 2 * (float)i);
    return 1;
  }
  uptempo_agent_info info = {.size = sizeof info};
  CHECK(uptempo_agent_get_info(gpu, &info));
  printf("%s: %d right results\n", info.name, n);
  // In any order; the Runtime last, because `info` has names that belong to its agents.
  uptempo_batch_destroy(batch);
  uptempo_queue_destroy(queue);
  uptempo_buffer_destroy(x_buffer);
  uptempo_buffer_destroy(y_buffer);
  uptempo_kernel_destroy(saxpy);
  uptempo_program_destroy(program);
  uptempo_runtime_destroy(runtime);
  return 0;
}
