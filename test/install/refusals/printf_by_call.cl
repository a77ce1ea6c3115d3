kernel void noisy(global uint* value) {
  value[0] *= 2;
  printf("value %u\n", value[0]);
}
