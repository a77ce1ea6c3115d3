// Kernels of litmus tests, one work-item per word of a cell. Races need kernels of some duration:
// `rounds` sets the delay before the access (lower half) and after it (upper half). The workgroup
// size is fixed, and word() used instead of get_global_id(), which loads the grid's offset: kernels
// read only arguments and cells.
#define LITMUS kernel __attribute__((reqd_work_group_size(64, 1, 1))) void

// The words of workgroup g are those of g + `first` (lower half of `turn`) of all workgroups (upper
// half). Workgroups go to XCDs by number, so dispatches with another `first` use other L2s.
static uint word(uint turn) {
  const uint group = (get_group_id(0) + (turn & 0xffff)) % (turn >> 16);
  return group * 64 + get_local_id(0);
}

static void linger(uint rounds) {
  for (uint i = 0; i < rounds; ++i) __asm__ volatile("s_nop 7");
}

LITMUS litmus_store(global uint* to, uint value, uint rounds, uint turn) {
  linger(rounds & 0xffff);
  to[word(turn)] = value;
  linger(rounds >> 16);
}

LITMUS litmus_copy(global const uint* from, global uint* to, uint rounds, uint turn) {
  linger(rounds & 0xffff);
  to[word(turn)] = from[word(turn)];
  linger(rounds >> 16);
}

LITMUS litmus_add(global uint* cell, uint value, uint rounds, uint turn) {
  linger(rounds & 0xffff);
  cell[word(turn)] += value;
  linger(rounds >> 16);
}
