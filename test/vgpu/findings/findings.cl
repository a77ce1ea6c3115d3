// The kernels have names that C++ compilers give to fill(unsigned int*, unsigned int) and
// add(unsigned int const*, unsigned int*).

kernel void _Z4fillPjj(global uint* out, uint value) {
  out[get_global_id(0)] = value + (uint)get_global_id(0);  // line 5
}

kernel void _Z3addPKjPj(global const uint* in, global uint* out) {
  const uint value = in[get_global_id(0)];  // line 9
  out[get_global_id(0)] = value + 1;        // line 10
}
