// Even workgroups store values of equal elements to common places, odd ones load them and count
// those whose elements differ. Lanes are `step` apart, and place `spread` times the lane is theirs.
// An access of a volatile vector is one instruction, for example global_load_dwordx4 glc.
#define EXCHANGE(name, vector, mixed)                                                \
  kernel void name(global vector* places, global uint* torn, uint rounds, uint step, \
                   uint spread) {                                                    \
    const uint lane = get_local_id(0);                                               \
    if (lane % step != 0) return;                                                    \
    global volatile vector* place = &places[lane * spread % 64];                     \
    uint count = 0;                                                                  \
    for (uint i = 0; i < rounds; ++i) {                                              \
      if (get_group_id(0) % 2 == 0) {                                                \
        *place = (vector)(i + get_group_id(0));                                      \
      } else {                                                                       \
        const vector value = *place;                                                 \
        count += (mixed) ? 1 : 0;                                                    \
      }                                                                              \
    }                                                                                \
    if (count != 0) atomic_add(torn, count);                                         \
  }
EXCHANGE(exchange2, uint2, value.x != value.y)
EXCHANGE(exchange4, uint4, any(value != value.xxxx))
