// What litmus tests do to their cells, one work-item for each word. `rounds` lets a kernel last: races need two that are at work.
#define LINGER(rounds) \
  for (uint i = 0; i < rounds; ++i) __asm__ volatile("s_nop 7")

kernel void litmus_store(global uint* to, uint value, uint rounds) {
  LINGER(rounds);
  to[get_global_id(0)] = value;
}

kernel void litmus_copy(global const uint* from, global uint* to, uint rounds) {
  LINGER(rounds);
  to[get_global_id(0)] = from[get_global_id(0)];
}

kernel void litmus_add(global uint* cell, uint value, uint rounds) {
  LINGER(rounds);
  cell[get_global_id(0)] += value;
}
