// Checks of the C tests: each one that fails is printed with its line, and counted.
#ifndef UPTEMPO_TEST_ENGINE_C_CHECK_H
#define UPTEMPO_TEST_ENGINE_C_CHECK_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <uptempo/uptempo.h>

extern int checks, failures;

static inline bool check(bool holds, const char* text, const char* file, int line) {
  ++checks;
  if (holds) return true;
  ++failures;
  printf("%s:%d: failed: %s\n", file, line, text);
  return false;
}
#define CHECK(condition) check((condition), #condition, __FILE__, __LINE__)

static inline void check_ok(uptempo_status status, const char* call, const char* file, int line) {
  if (!check(status == UPTEMPO_OK, call, file, line))
    printf("  %s: %s\n", uptempo_status_name(status), uptempo_error()->message);
}
// The call succeeds.
#define OK(call) check_ok((call), #call, __FILE__, __LINE__)

static inline void check_error(uptempo_status found, uptempo_status expected, const char* text,
                               const char* call, const char* file, int line) {
  const uptempo_error_info* const error = uptempo_error();
  const bool holds =
      found == expected && error->status == expected && strstr(error->message, text) != NULL;
  if (!check(holds, call, file, line))
    printf("  expected %s with '%s'; found %s: %s\n", uptempo_status_name(expected), text,
           uptempo_status_name(found), error->message);
}
// The call fails with this code, and the message contains the text.
#define FAILS(call, code, text) \
  check_error((call), UPTEMPO_ERROR_##code, text, #call, __FILE__, __LINE__)

// A test case: prints its name, and runs it if the program's argument is part of the name.
bool begins(const char* name);

// Shared by the cases.
extern uptempo_runtime* runtime;
extern const uptempo_agent* gpu;
extern uptempo_program* basics;  // kernels/basics.cl

void runtime_cases(void);
void program_cases(void);
void loaded_kernel_cases(void);
void queue_cases(void);
void batch_cases(void);
void completion_cases(void);
void memory_cases(void);
void stream_cases(void);
void recording_cases(void);
void last_case(void);  // ends the Runtime

static inline uptempo_kernel* kernel_of(uptempo_program* program, const char* name) {
  uptempo_kernel* kernel = NULL;
  OK(uptempo_kernel_create(program, name, NULL, &kernel));
  return kernel;
}
// Host memory that the GPU accesses.
static inline uptempo_buffer* pinned_buffer(size_t bytes) {
  uptempo_buffer* buffer = NULL;
  OK(uptempo_buffer_create(gpu, UPTEMPO_MEMORY_PINNED, bytes, NULL, &buffer));
  memset(uptempo_buffer_data(buffer), 0, bytes);
  return buffer;
}

// Arguments of kernels of basics.cl.
typedef struct fill_arguments {
  uint32_t* out;
  uint32_t value;
} fill_arguments;
typedef struct iota_arguments {
  uint32_t* out;
  uint32_t first, step;
} iota_arguments;
typedef struct chain_arguments {
  uint32_t* values;
  uint32_t addend;
} chain_arguments;

#endif
