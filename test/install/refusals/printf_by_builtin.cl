kernel void noisy(global uint* value) {
  value[0] *= 2;
  __builtin_printf("value %u\n", value[0]);
}
