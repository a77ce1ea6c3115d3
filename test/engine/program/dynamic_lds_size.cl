// Compiled as code object version 5. Its hidden arguments hold the size of dynamic group memory at
// byte 120 (LLVM AMDGPU User Guide, "Code Object V5 Kernel Argument Metadata";
// AMDGPUHSAMetadataStreamer.cpp).
kernel void read_dynamic_lds_size(global uint* out, local volatile uint* array) {
  const constant uint* hidden = (const constant uint*)__builtin_amdgcn_implicitarg_ptr();
  array[get_local_id(0)] = hidden[120 / 4];
  out[get_global_id(0)] = array[get_local_id(0)];
}
