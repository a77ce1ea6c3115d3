// Raw buffers, by LLVM's intrinsics. A kernel reaches an intrinsic through a function of its name,
// as AMD's Composable Kernel does.
uint raw_load(int4 buffer, uint offset, uint soffset,
              int policy) __asm("llvm.amdgcn.raw.buffer.load.i32");
uint4 raw_load4(int4 buffer, uint offset, uint soffset,
                int policy) __asm("llvm.amdgcn.raw.buffer.load.v4i32");
void raw_store(uint value, int4 buffer, uint offset, uint soffset,
               int policy) __asm("llvm.amdgcn.raw.buffer.store.i32");
void raw_store2(uint2 value, int4 buffer, uint offset, uint soffset,
                int policy) __asm("llvm.amdgcn.raw.buffer.store.v2i32");

int4 buffer_of(global void* memory, uint bytes) {
  const ulong address = (ulong)memory;
  return (int4)((int)address, (int)(address >> 32) & 0xffff, (int)bytes, 0x00027000);
}

// out[i + 1] = in[i], with offsets that are negative until the last addition. The compiler leaves
// that one to the instruction.
kernel void shift(global uint* in, global uint* out, uint bytes, uint back) {
  const uint offset = 4 * get_local_id(0) - back;
  const uint value = raw_load(buffer_of(in, bytes), offset + 2048, 0, 0);
  raw_store(value, buffer_of(out, bytes), offset + 2052, 0, 0);
}

// The same with four dwords a lane, and without the shift.
kernel void copy_four(global uint* in, global uint* out, uint bytes, uint back) {
  const uint offset = 16 * get_local_id(0) - back;
  const uint4 value = raw_load4(buffer_of(in, bytes), offset + 2048, 0, 0);
  vstore4(value, get_local_id(0), out);
}

// Lanes that are masked by an offset of -1 store nothing, no matter how many dwords.
kernel void masked(global uint* out, uint bytes) {
  const uint i = get_local_id(0);
  raw_store2((uint2)(i, i), buffer_of(out, bytes), i % 2 == 0 ? ~0u : 8 * i, 0, 0);
}
