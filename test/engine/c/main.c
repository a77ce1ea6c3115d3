// Every function of the C interface on a device: its results against the CPU's, its errors, and
// what it must not do. C11; the virtual GPU's launcher runs it where there is no device.
//
//   test_c [TEXT]    runs the cases whose names contain TEXT
#include <stdlib.h>

#include <uptempo/kernels/basics.h>
#include "check.h"

int checks, failures;
uptempo_runtime* runtime;
const uptempo_agent* gpu;
uptempo_program* basics;

static const char* chosen = "";

bool begins(const char* name) {
  if (strstr(name, chosen) == NULL) return false;
  printf("- %s\n", name);
  return true;
}

int main(int argc, char** argv) {
  if (argc > 1) chosen = argv[1];
  setvbuf(stdout, NULL, _IOLBF, 0);
  CHECK(uptempo_error()->status == UPTEMPO_OK && uptempo_error()->message[0] == '\0');
  OK(uptempo_runtime_create(NULL, &runtime));
  OK(uptempo_runtime_gpu(runtime, 0, &gpu));
  size_t bytes = 0;
  const void* const code = kernels_basics(&bytes);
  OK(uptempo_program_create(gpu, code, bytes, NULL, &basics));
  if (failures == 0) {
    runtime_cases();
    program_cases();
    loaded_kernel_cases();
    queue_cases();
    completion_cases();
    batch_cases();
    memory_cases();
    stream_cases();
    recording_cases();
    last_case();
  }
  printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
