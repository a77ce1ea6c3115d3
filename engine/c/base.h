// Types that all parts of the C interface share: handles, status codes, error texts. The rules are
// in uptempo.h.
#ifndef UPTEMPO_C_BASE_H
#define UPTEMPO_C_BASE_H

#include <stddef.h>
#include <stdint.h>

#include <uptempo/runtime/version.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UPTEMPO_API __attribute__((visibility("default")))

// An enum has 4 bytes in both languages. In C++ any number of its type is a value that the library
// can read and refuse; without a type, a number beyond the constants' bits is undefined behaviour.
#ifdef __cplusplus
#define UPTEMPO_ENUM_TYPE : int32_t
#else
#define UPTEMPO_ENUM_TYPE
#endif

typedef struct uptempo_agent uptempo_agent;
typedef struct uptempo_batch uptempo_batch;
typedef struct uptempo_buffer uptempo_buffer;
typedef struct uptempo_copier uptempo_copier;
typedef struct uptempo_event uptempo_event;
typedef struct uptempo_kernel uptempo_kernel;
typedef struct uptempo_notifier uptempo_notifier;
typedef struct uptempo_program uptempo_program;
typedef struct uptempo_queue uptempo_queue;
typedef struct uptempo_recording uptempo_recording;
typedef struct uptempo_runtime uptempo_runtime;
typedef struct uptempo_stream uptempo_stream;
typedef struct uptempo_streams uptempo_streams;

// The result of a call. The numbers are stable. Errors have the numbers of uptempo::ErrorCode.
typedef enum uptempo_status UPTEMPO_ENUM_TYPE {
  UPTEMPO_OK = 0,
  // No error, and uptempo_error() stays as it is: a call with a time limit has found unfinished
  // work or no room within it.
  UPTEMPO_NOT_READY = -1,

  // The caller.
  UPTEMPO_ERROR_ARGUMENT = 1,     // a value is not acceptable: NULL, size, name, agent, geometry
  UPTEMPO_ERROR_MISUSE = 2,       // the object's state forbids the call: ended Runtime, call order
  UPTEMPO_ERROR_UNAVAILABLE = 3,  // this machine, agent, driver or ROCr lacks it: no GPU
  UPTEMPO_ERROR_PROGRAM = 4,      // code object, kernel or metadata is not usable on this agent
  UPTEMPO_ERROR_FILE = 5,         // a file cannot be read or written, or its contents are damaged

  // A resource that has no room now. A later call may succeed.
  UPTEMPO_ERROR_MEMORY = 6,    // memory of host or device, or what the driver counts
  UPTEMPO_ERROR_RING = 7,      // slots of the queue's ring
  UPTEMPO_ERROR_KERNARGS = 8,  // kernarg slabs of a queue, or a recording's spare blocks
  UPTEMPO_ERROR_TIMELINE = 9,  // publications of a queue that are unfinished at a time
  UPTEMPO_ERROR_SIGNALS = 10,  // signals of a queue, or of the process
  UPTEMPO_ERROR_LIMIT = 11,    // another limit of an object, named by `found`

  // Waiting.
  UPTEMPO_ERROR_DEADLINE = 12,  // the time limit has passed before the work was complete
  UPTEMPO_ERROR_TOO_LONG = 13,  // the batch is longer than what the ring can take at once

  // The device.
  UPTEMPO_ERROR_FAILED = 14,       // a queue or copy engine has failed: a new queue is needed
  UPTEMPO_ERROR_DEVICE_LOST = 15,  // memory fault, reset or loss of a GPU
  UPTEMPO_ERROR_HSA = 16,          // HSA refused with a status that no other value covers

  UPTEMPO_ERROR_INTERNAL = 1000,  // an exception that is no uptempo::Error
} uptempo_status;

#ifdef __cplusplus
static_assert(sizeof(uptempo_status) == 4, "an enum has 4 bytes");
#else
_Static_assert(sizeof(uptempo_status) == 4, "compile without -fshort-enums: an enum has 4 bytes");
#endif

// Returns UPTEMPO_VERSION_NUMBER of the library that runs. A program whose headers are older runs
// with it, as long as the soname is the same. Any thread.
UPTEMPO_API uint32_t uptempo_version(void);

// Returns "UPTEMPO_ERROR_ARGUMENT", or "unknown status". Any thread.
UPTEMPO_API const char* uptempo_status_name(uptempo_status status);

// The last failure of a thread: facts that a program needs to act on it (engine/runtime/error.hpp).
// No text is NULL. The texts name the C++ functions that do the work.
typedef struct uptempo_error_info {
  size_t size;
  uptempo_status status;  // UPTEMPO_OK: no call of this thread has failed yet
  int32_t hsa_status;     // hsa_status_t: what HSA returned, or the closest one
  const char* function;   // of this interface
  const char* call;       // the function that failed: "hsa_queue_create", "Program::kernel"
  const char* asked;      // what the caller requested
  const char* found;      // for a choice, every candidate and why it was rejected
  const char* remedy;     // what the caller can do
  const char* message;    // all of them, in one sentence
} uptempo_error_info;

// Returns the last failure of the calling thread, never NULL. Valid until the next failure of a
// call of this thread, or its end. When the thread's C++ objects have ended, in a handler of
// atexit() or a destructor of pthread_key_create(), `asked`, `found` and `remedy` are empty, and
// `message` has at most 511 bytes. `size` is the library's. Costs nothing.
UPTEMPO_API const uptempo_error_info* uptempo_error(void);

// Frees text or bytes that a function of this interface has returned. NULL is harmless. Any thread.
UPTEMPO_API void uptempo_free(void* memory);

// As a time limit: none.
#define UPTEMPO_NO_LIMIT UINT64_MAX

// The line of a call, as "solver.c:120". Functions with a parameter `site` name it in reports and
// errors about the work. It must exist as long as the queue; for a stream, as long as the streams
// handle and all its streams. A literal does. NULL: not known.
#define UPTEMPO_HERE __FILE__ ":" UPTEMPO_TEXT_(__LINE__)
#define UPTEMPO_TEXT_(line) UPTEMPO_TEXT_OF_(line)
#define UPTEMPO_TEXT_OF_(line) #line

#ifdef __cplusplus
}
#endif

#endif
