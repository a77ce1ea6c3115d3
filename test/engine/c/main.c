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

// The thread's C++ objects have ended: exit() runs handlers after them.
static void at_exit(void) {
  const int failures_before = failures;
  const uptempo_error_info* const error = uptempo_error();
  CHECK(error->status == UPTEMPO_ERROR_ARGUMENT && error->hsa_status != 0);
  CHECK(strcmp(error->function, "uptempo_queue_drain") == 0);
  CHECK(strstr(error->message, "uptempo_queue_drain: parameter 'queue': it is NULL") != NULL);
  CHECK(error->asked[0] == '\0' && error->found[0] == '\0' && error->remedy[0] == '\0');
  FAILS(uptempo_queue_reclaim(NULL), ARGUMENT, "uptempo_queue_reclaim: parameter 'queue'");
  char* text = NULL;
  FAILS(uptempo_queue_report(NULL, &text), ARGUMENT, "uptempo_queue_report: parameter 'queue'");
  if (failures != failures_before) {
    fflush(stdout);
    _Exit(EXIT_FAILURE);
  }
}

int main(int argc, char** argv) {
  if (argc > 1) chosen = argv[1];
  CHECK(atexit(at_exit) == 0);
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
  FAILS(uptempo_queue_drain(NULL, 0), ARGUMENT, "");  // for at_exit()
  printf("%d checks, %d failures\n", checks, failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
