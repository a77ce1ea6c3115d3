// Loads and stores of parts of registers, of two places at once and of private memory, as LLVM's
// instruction selection emits them. narrow_memory_test.cpp names the kernels that stand for an
// instruction.
#define ITEM const size_t i = get_global_id(0)
#define LOCAL_ITEM const size_t i = get_global_id(0), l = get_local_id(0)

kernel void gather_shorts(global const ushort* in, global const uint* at, global uint* out) {
  ITEM;
  out[i] = as_uint((ushort2)(in[at[2 * i]], in[at[2 * i + 1]]));
}
kernel void gather_bytes(global const uchar* in, global const uint* at, global uint* out) {
  ITEM;
  out[i] = as_uint((ushort2)(in[at[2 * i]], in[at[2 * i + 1]]));
}
kernel void gather_signed_bytes(global const char* in, global const uint* at, global uint* out) {
  ITEM;
  out[i] = as_uint((short2)(in[at[2 * i]], in[at[2 * i + 1]]));
}
kernel void scatter_shorts(global const uint* in, global const uint* at, global ushort* out) {
  ITEM;
  out[at[2 * i]] = as_ushort2(in[i]).y;
  out[at[2 * i + 1]] = as_ushort2(in[i]).x;
}
kernel void scatter_bytes(global const uint* in, global const uint* at, global uchar* out) {
  ITEM;
  out[at[2 * i]] = (uchar)(in[i] >> 16);
  out[at[2 * i + 1]] = (uchar)in[i];
}
kernel void exchange_shorts(global const uint* in, global const uint* at, global uint* out) {
  local ushort shared[512];
  LOCAL_ITEM;
  shared[at[2 * l]] = as_ushort2(in[i]).y;
  shared[at[2 * l + 1]] = as_ushort2(in[i]).x;
  barrier(CLK_LOCAL_MEM_FENCE);
  out[i] = as_uint((ushort2)(shared[l], shared[511 - l]));
}
kernel void exchange_bytes(global const uint* in, global const uint* at, global uint* out) {
  local char shared[512];
  LOCAL_ITEM;
  shared[at[2 * l]] = (char)(in[i] >> 16);
  shared[at[2 * l + 1]] = (char)in[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  out[i] = as_uint((short2)(shared[l], shared[511 - l]));
}
kernel void exchange_unsigned_bytes(global const uint* in, global const uint* at,
                                    global uint* out) {
  local uchar shared[512];
  LOCAL_ITEM;
  shared[at[2 * l]] = (uchar)(in[i] >> 16);
  shared[at[2 * l + 1]] = (uchar)in[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  out[i] = as_uint((ushort2)(shared[l], shared[511 - l]));
}

// Two elements at a distance: up to 255 elements, or a multiple of 64.
kernel void pairs32(global const uint* in, global uint* out) {
  local uint shared[1024];
  LOCAL_ITEM;
  shared[l] = in[i];
  shared[l + 640] = in[i] * 3;
  barrier(CLK_LOCAL_MEM_FENCE);
  out[4 * i] = shared[255 - l];
  out[4 * i + 1] = shared[255 - l + 640];
  out[4 * i + 2] = shared[l / 4 * 2 + 3];
  out[4 * i + 3] = shared[l / 4 * 2 + 64];
}
kernel void pairs64(global const ulong* in, global ulong* out) {
  local ulong shared[1024];
  LOCAL_ITEM;
  shared[l] = in[i];
  shared[l + 512] = in[i] * 3;
  barrier(CLK_LOCAL_MEM_FENCE);
  out[4 * i] = shared[255 - l];
  out[4 * i + 1] = shared[255 - l + 512];
  out[4 * i + 2] = shared[l / 4 * 2 + 3];
  out[4 * i + 3] = shared[l / 4 * 2 + 64];
}

// Arrays in private memory, of every element size.
#define PRIVATE(T)                                                                    \
  kernel void private_##T(global const T* in, global const uint* at, global T* out) { \
    ITEM;                                                                             \
    volatile T own[24];                                                               \
    for (uint n = 0; n < 24; ++n) own[n] = (T)(in[i] + (T)n);                         \
    own[at[2 * i] % 24] = in[i];                                                      \
    own[at[2 * i + 1] % 24] += own[at[2 * i] % 24];                                   \
    T sum = 0;                                                                        \
    for (uint n = 0; n < 24; ++n) sum = (T)(sum * 3 + own[(n * 7 + at[i]) % 24]);     \
    out[i] = sum;                                                                     \
  }
PRIVATE(uchar)
PRIVATE(char)
PRIVATE(ushort)
PRIVATE(short)
PRIVATE(uint)
PRIVATE(ulong)

kernel void private_halves(global const uint* in, global const uint* at, global uint* out) {
  ITEM;
  volatile ushort own[24];
  for (uint n = 0; n < 24; ++n) own[n] = (ushort)(in[i] * n);
  own[at[2 * i] % 24] = as_ushort2(in[i]).y;
  const ushort low = own[at[2 * i + 1] % 24], high = own[at[2 * i] % 24];
  out[i] = as_uint((ushort2)(low, high));
}
