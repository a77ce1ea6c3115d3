// A JIT in C: an expression of the command line becomes a kernel.
#include <stdio.h>
#include <stdlib.h>

#include "check.h"

//! [compile]
// Compiles HIP source for a GPU. Returns the bytes that hipcc made, or NULL.
static void* compile(const char* source, const char* target, size_t* bytes) {
  FILE* file = fopen("jit.hip", "w");
  if (file == NULL || fputs(source, file) < 0 || fclose(file) != 0) return NULL;
  char command[256];
  snprintf(command, sizeof command,
           "HIP_PLATFORM=amd hipcc --genco -O2 --offload-arch=%s jit.hip -o jit.co", target);
  if (system(command) != 0) return NULL;
  file = fopen("jit.co", "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) return NULL;
  *bytes = (size_t)ftell(file);
  rewind(file);
  void* code = malloc(*bytes);
  const size_t read = code == NULL ? 0 : fread(code, 1, *bytes, file);
  fclose(file);
  if (read == *bytes) return code;
  free(code);
  return NULL;
}
//! [compile]

int main(int argc, char** argv) {
  const char* expression = argc > 1 ? argv[1] : "2 * x[i] + a";
  //! [launch]
  uptempo_runtime* runtime;
  const uptempo_agent* gpu;
  uptempo_agent_info info = {.size = sizeof info};
  check(uptempo_runtime_create(NULL, &runtime));
  check(uptempo_runtime_gpu(runtime, 0, &gpu));
  check(uptempo_agent_get_info(gpu, &info));

  char source[4096];
  const int length =
      snprintf(source, sizeof source,
               "#include <hip/hip_runtime.h>\n"
               "extern \"C\" __global__ void jit(float* y, const float* x, float a, unsigned n) {\n"
               "  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;\n"
               "  if (i < n) y[i] = %s;\n"
               "}\n",
               expression);
  if (length >= (int)sizeof source) return fputs("the expression is too long\n", stderr), 1;
  size_t code_bytes;
  void* code = compile(source, info.name, &code_bytes);
  if (code == NULL) return fputs("the kernel cannot be compiled\n", stderr), 1;
  uptempo_program* program;
  uptempo_kernel* jit;
  check(uptempo_program_create(gpu, code, code_bytes, NULL, &program));
  free(code);  // the program has a copy
  check(uptempo_kernel_create(program, "jit", NULL, &jit));

  uint32_t n = 1000;
  uptempo_buffer *x_buffer, *y_buffer;
  check(uptempo_buffer_create(gpu, UPTEMPO_MEMORY_PINNED, n * sizeof(float), NULL, &x_buffer));
  check(uptempo_buffer_create(gpu, UPTEMPO_MEMORY_PINNED, n * sizeof(float), NULL, &y_buffer));
  float *x = uptempo_buffer_data(x_buffer), *y = uptempo_buffer_data(y_buffer), a = 1;
  for (uint32_t i = 0; i < n; ++i) x[i] = (float)i;

  uptempo_queue* queue;
  uptempo_batch* batch;
  uptempo_completion done;
  check(uptempo_queue_create(gpu, NULL, &queue));
  check(uptempo_batch_create(queue, NULL, &batch));
  void* params[] = {&y, &x, &a, &n};  // as for hipModuleLaunchKernel
  uptempo_grid grid = uptempo_grid_of_blocks((n + 255) / 256, 1, 1, 256, 1, 1);
  check(uptempo_batch_dispatch(batch, jit, &grid, uptempo_params(params, 4)));
  check(uptempo_batch_submit(batch, UPTEMPO_NO_LIMIT, UPTEMPO_HERE, &done));
  check(uptempo_completion_wait(done, UPTEMPO_NO_LIMIT, UPTEMPO_WAIT_DEFAULT));
  //! [launch]
  const uint32_t shown[] = {0, 1, n - 1};
  for (int i = 0; i < 3; ++i) printf("y[%u] = %g\n", shown[i], y[shown[i]]);
  return 0;
}
