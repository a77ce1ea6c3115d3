// Checks for these programs. The first failed check ends the program with status 1 and prints its
// location.
#pragma once

#include <hip/hip_runtime.h>
#include <cstdio>
#include <cstdlib>

#define CHECK_HIP(call)                                                  \
  do {                                                                   \
    const hipError_t status = (call);                                    \
    if (status != hipSuccess) {                                          \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, \
                   hipGetErrorString(status));                           \
      std::exit(1);                                                      \
    }                                                                    \
  } while (false)

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (false)
