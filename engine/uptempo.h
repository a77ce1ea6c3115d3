// The C interface of Uptempo: one include for C11 programs, and for every language that calls C.
//
//   #include <uptempo/uptempo.h>
//
//   uptempo_runtime* runtime = NULL;
//   const uptempo_agent* gpu = NULL;
//   uptempo_queue* queue = NULL;
//   if (uptempo_runtime_create(NULL, &runtime) != UPTEMPO_OK ||
//       uptempo_runtime_gpu(runtime, 0, &gpu) != UPTEMPO_OK ||
//       uptempo_queue_create(gpu, NULL, &queue) != UPTEMPO_OK)
//     fprintf(stderr, "%s\n", uptempo_error()->message);
//
// Link the CMake target uptempo::shared, or what `pkg-config uptempo-shared` names. Each function
// calls the C++ class that its header names; that class's header has the details.
//
// Results: a function that can fail returns a uptempo_status, and its results by its last
// parameters. On failure a handle that it would have returned is NULL, and nothing has changed
// unless the function's comment says otherwise. uptempo_error() has the reason in words. No C++
// exception leaves a function, and no error ends the process.
//
// Handles: opaque. Each `create` has a `destroy`, which accepts NULL. A NULL or a handle of another
// kind is refused with UPTEMPO_ERROR_ARGUMENT; a destroyed one must not be used. Handles may be
// destroyed in any order, unless a comment says otherwise. A handle that outlives the last Runtime
// may be destroyed. Its functions that need the device or its memory return an error then; those
// that read facts which the handle keeps, such as a kernel's arguments, still work.
//
// Structs: the first member of a struct for options or facts is `size`, which the caller sets to
// its sizeof. Set all others to 0 first. A field of 0 takes its default, and so does a field that a
// struct of an older header lacks. A struct of a newer header is accepted if the fields that the
// library does not know are 0. NULL for options takes all defaults. Facts beyond the library's are
// set to 0. A struct without `size` is a value or the element of an array, and never grows.
//
// Memory: text or bytes that a function returns by a `char**` or `void**` belong to the caller,
// which frees them by uptempo_free(). A `const char*` in a struct or result belongs to the object
// that the function's comment names.
//
// Time limits: nanoseconds. 0 tries without waiting; UPTEMPO_NO_LIMIT waits for as long as it
// takes. A call that finds nothing in time returns UPTEMPO_NOT_READY, which leaves uptempo_error()
// as it was, or the error of the exhausted resource, as its comment says.
//
// Threads: "any thread" means at the same time, too. "one owner" means one thread at a time.
// A thread inside of a call must not be cancelled (pthread_cancel).
#ifndef UPTEMPO_UPTEMPO_H
#define UPTEMPO_UPTEMPO_H

#include <uptempo/c/base.h>
#include <uptempo/c/batch.h>
#include <uptempo/c/completion.h>
#include <uptempo/c/memory.h>
#include <uptempo/c/program.h>
#include <uptempo/c/queue.h>
#include <uptempo/c/recording.h>
#include <uptempo/c/runtime.h>
#include <uptempo/c/stream.h>

#endif
