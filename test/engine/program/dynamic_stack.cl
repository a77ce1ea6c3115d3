// A kernel that calls functions through pointers, and those call themselves the same way, so that
// its stack has no static bound. `levels` calls are active at a time, each with an array of its
// own.
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable

#define WORDS 16

struct Steps;
typedef uint (*Step)(const struct Steps* steps, uint levels, uint seed);
struct Steps {
  Step next[2];
};

static uint descend(const struct Steps* steps, uint levels, uint seed, uint factor) {
  volatile uint words[WORDS];
  for (uint i = 0; i < WORDS; ++i) words[i] = seed + i;
  const uint below = levels == 0 ? 0 : steps->next[seed % 2](steps, levels - 1, seed * 3 + 1);
  uint sum = 0;
  for (uint i = 0; i < WORDS; ++i) sum += words[i];
  return sum + factor * below;
}

__attribute__((noinline)) uint by_five(const struct Steps* steps, uint levels, uint seed) {
  return descend(steps, levels, seed, 5);
}
__attribute__((noinline)) uint by_seven(const struct Steps* steps, uint levels, uint seed) {
  return descend(steps, levels, seed, 7);
}

kernel void descents(global uint* out, uint levels) {
  const size_t i = get_global_id(0);
  const struct Steps steps = {{by_five, by_seven}};
  out[i] = steps.next[i % 2](&steps, levels, (uint)i);
}

// Its stack is bounded.
kernel void bounded(global uint* out, uint add) {
  volatile uint words[4];
  for (uint i = 0; i < 4; ++i) words[i] = add + i;
  out[get_global_id(0)] = words[get_global_id(0) % 4];
}
