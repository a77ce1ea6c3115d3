// Copies and fills as dispatches of a stream's own queue ("blit kernels"): they need no signal to follow or precede a kernel.
//
//   copy_bytes(uchar* to, const uchar* from, ulong bytes)
//   copy_rows (uchar* to, const uchar* from, ulong width_bytes, ulong height, ulong to_pitch, ulong from_pitch)
//   fill_bytes(uchar* to, ulong bytes, ulong low, ulong high)
//   fill_rows (uchar* to, ulong width_bytes, ulong height, ulong to_pitch, ulong low, ulong high)
//
// Addresses, widths and pitches are any number of bytes, 0 included; a pitch is the distance from one row's start to the next one's. Memory is of any kind
// that the agent may access. `low` and `high` are 16 bytes, the lowest first, that are repeated from `to` on, in every row from its start: a pattern of 1, 2, 4 or
// 8 bytes is one of 16 when it is written often enough, so that one kernel serves all sizes.
//
// Any grid serves any size: work-items go on with the grid's stride, along x in a run of bytes, along y from row to row. Launch the linear kernels with one row of
// work-items (further rows would store the same again), one for each 16 bytes up to what fills the device.
//
// Ranges of source and destination that overlap are the caller's error: which bytes are read before they are written is not defined. No byte outside the ranges is
// read or written. Every argument is explicit: there are no hidden ones, and a block has 24, 48, 32 or 48 bytes.
//
// The bulk is stored in 16-byte units at multiples of 16. The loads are of the same size at whatever address the source then has: global memory of GFX9 and later takes
// any alignment (SH_MEM_CONFIG.alignment_mode is "unaligned" in every queue that KFD makes, and the compiler's amdhsa target counts on it), which leaves no case
// for ends that do not share their alignment.

// As 16 bytes of any alignment.
typedef struct __attribute__((packed)) {
  uint4 value;
} Unaligned16;

typedef struct {
  ulong first, stride;
} Share;

// From the packet: get_global_id() would have the compiler append 56 bytes of hidden arguments for the sake of an offset that AQL does not have.
static Share share_x(void) {
  return (Share){(ulong)__builtin_amdgcn_workgroup_id_x() * __builtin_amdgcn_workgroup_size_x() + __builtin_amdgcn_workitem_id_x(),
                 __builtin_amdgcn_grid_size_x()};
}
static Share share_y(void) {
  return (Share){(ulong)__builtin_amdgcn_workgroup_id_y() * __builtin_amdgcn_workgroup_size_y() + __builtin_amdgcn_workitem_id_y(),
                 __builtin_amdgcn_grid_size_y()};
}

// Bytes before the first multiple of 16, at most `bytes`.
static ulong head_of(global const uchar* to, ulong bytes) { return min((ulong)(-(ulong)to & 15), bytes); }

static void copy_run(global uchar* to, global const uchar* from, ulong bytes, Share items) {
  const ulong head = head_of(to, bytes);
  const ulong units = (bytes - head) / 16;
  for (ulong i = items.first; i < head; i += items.stride) to[i] = from[i];
  global uint4* const units_to = (global uint4*)(to + head);
  global const Unaligned16* const units_from = (global const Unaligned16*)(from + head);
  for (ulong i = items.first; i < units; i += items.stride) units_to[i] = units_from[i].value;
  for (ulong i = head + units * 16 + items.first; i < bytes; i += items.stride) to[i] = from[i];
}

// The 16 bytes that begin `count` bytes into the endless pattern.
static ulong2 advanced(ulong2 pattern, ulong count) {
  if ((count & 8) != 0) pattern = pattern.yx;
  const ulong shift = (count & 7) * 8;
  return shift == 0 ? pattern : (pattern >> shift) | (pattern.yx << (64 - shift));
}

static void fill_run(global uchar* to, ulong bytes, ulong2 pattern, Share items) {
  const ulong head = head_of(to, bytes);
  const ulong units = (bytes - head) / 16;
  for (ulong i = items.first; i < head; i += items.stride) to[i] = (uchar)advanced(pattern, i).x;
  global ulong2* const units_to = (global ulong2*)(to + head);
  const ulong2 unit = advanced(pattern, head);
  for (ulong i = items.first; i < units; i += items.stride) units_to[i] = unit;
  for (ulong i = head + units * 16 + items.first; i < bytes; i += items.stride) to[i] = (uchar)advanced(pattern, i).x;
}

kernel void copy_bytes(global uchar* to, global const uchar* from, ulong bytes) { copy_run(to, from, bytes, share_x()); }

kernel void copy_rows(global uchar* to, global const uchar* from, ulong width_bytes, ulong height, ulong to_pitch,
                      ulong from_pitch) {
  const Share rows = share_y();
  for (ulong row = rows.first; row < height; row += rows.stride)
    copy_run(to + row * to_pitch, from + row * from_pitch, width_bytes, share_x());
}

kernel void fill_bytes(global uchar* to, ulong bytes, ulong low, ulong high) {
  fill_run(to, bytes, (ulong2)(low, high), share_x());
}

kernel void fill_rows(global uchar* to, ulong width_bytes, ulong height, ulong to_pitch, ulong low, ulong high) {
  const Share rows = share_y();
  for (ulong row = rows.first; row < height; row += rows.stride)
    fill_run(to + row * to_pitch, width_bytes, (ulong2)(low, high), share_x());
}
