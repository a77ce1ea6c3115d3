// Kernels that differ in the size of their arguments. Each reads the first and the last word.
//
//   arguments_of_N(uint* out, uint2 words[N / 8 - 1])     out[0] = first word of `words` + last one
#define ARGUMENTS_OF(BYTES)                                                \
  typedef struct {                                                         \
    uint2 pairs[BYTES / 8 - 1];                                            \
  } Pairs##BYTES;                                                          \
  kernel void arguments_of_##BYTES(global uint* out, Pairs##BYTES given) { \
    out[0] = given.pairs[0].x + given.pairs[BYTES / 8 - 2].y;              \
  }

ARGUMENTS_OF(16)
ARGUMENTS_OF(32)
ARGUMENTS_OF(64)
ARGUMENTS_OF(128)
ARGUMENTS_OF(256)
ARGUMENTS_OF(512)
ARGUMENTS_OF(1024)
ARGUMENTS_OF(2048)
ARGUMENTS_OF(4096)
