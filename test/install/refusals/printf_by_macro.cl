#define LOG(x) printf("value %u\n", x)
kernel void noisy(global uint* value) {
  value[0] *= 2;
  LOG(value[0]);
}
