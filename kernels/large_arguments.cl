// Kernels with large arguments that read the last bytes late. A kernarg block that is truncated or
// reused too early changes the result.
//
//   last_bytes_of_N(uint* out, ulong rounds, ArgumentsN arguments)
//
// N is the size of the whole kernarg segment in bytes: 4080, 65536, 130032 or 131056. `arguments`
// begins at byte 16 and ends the segment; there are no hidden arguments. Launch one work-item. It
// spins for `rounds` rounds of dependent arithmetic, then stores: out[0] = the last four bytes, by
// a scalar load; out[1] = the last byte, and out[2] = the first byte of `arguments`, by vector
// loads.
//
// Limits of the compiler (clang 15; the format's sizes and offsets have 32 bits). OpenCL C passes a
// struct as one value of the intermediate language, and instruction selection creates a node for
// each member. An array of 65520 bytes compiles for more than a minute; one of 131040 crashes
// clang. Members of 128 bytes compile in a second. They are aligned to 16 by hand, because a
// kernarg block's alignment is at most 64. Every work-item copies a struct that is indexed at run
// time to scratch memory first. Therefore these kernels read the bytes directly from the kernarg
// segment.
typedef ulong16 __attribute__((aligned(16))) Bytes128;

typedef struct {
  Bytes128 blocks[31];
  uint4 rest[6];
} Arguments4080;

typedef struct {
  Bytes128 blocks[511];
  uint4 rest[7];
} Arguments65536;

typedef struct {
  Bytes128 blocks[1015];
  uint4 rest[6];
} Arguments130032;

typedef struct {
  Bytes128 blocks[1023];
  uint4 rest[6];
} Arguments131056;

static void report(global uint* out, ulong rounds, uint segment_bytes) {
  uint x = 1;
  for (ulong i = 0; i < rounds; ++i) {
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
  }
  // x is never 0, but the compiler does not know that. It therefore cannot move the loads before
  // the loop, as it does with loads that it recognizes as kernel arguments.
  const uint late = x == 0 ? 4 : 0;
  const constant uchar* const segment =
      (const constant uchar*)__builtin_amdgcn_kernarg_segment_ptr();
  out[0] = *(const constant uint*)(segment + (segment_bytes - 4 - late));
  out[1] = segment[segment_bytes - 1 - late];
  out[2] = segment[16 + late];
}

kernel void last_bytes_of_4080(global uint* out, ulong rounds, Arguments4080 arguments) {
  (void)arguments;
  report(out, rounds, 4080);
}
kernel void last_bytes_of_65536(global uint* out, ulong rounds, Arguments65536 arguments) {
  (void)arguments;
  report(out, rounds, 65536);
}
kernel void last_bytes_of_130032(global uint* out, ulong rounds, Arguments130032 arguments) {
  (void)arguments;
  report(out, rounds, 130032);
}
kernel void last_bytes_of_131056(global uint* out, ulong rounds, Arguments131056 arguments) {
  (void)arguments;
  report(out, rounds, 131056);
}
