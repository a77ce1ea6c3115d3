// Copies and fills as dispatches in a stream's own queue ("blit kernels"). They need no signal for
// their order with other kernels.
//
//   copy_bytes(uchar* to, const uchar* from, ulong bytes)
//   copy_rows (uchar* to, const uchar* from, ulong width_bytes, ulong height, ulong to_pitch,
//              ulong from_pitch)
//   copy_slices(uchar* to, const uchar* from, ulong width_bytes, ulong height, ulong depth,
//               ulong to_pitch, ulong from_pitch, ulong to_slice_pitch, ulong from_slice_pitch)
//   fill_bytes(uchar* to, ulong bytes, ulong low, ulong high)
//   fill_rows (uchar* to, ulong width_bytes, ulong height, ulong to_pitch, ulong low, ulong high)
//
// Arguments: addresses, widths and pitches are any number of bytes, including 0. A pitch is the
// distance between the starts of two rows, a slice pitch that between the starts of two slices of
// `height` rows. Memory may be of any kind that the agent can access.
// `low` and `high` are 16 bytes, lowest first, repeated from `to` on, in every row from its start.
// A pattern of 1, 2, 4 or 8 bytes is repeated to 16, so that one kernel serves all sizes.
//
// Grid: any grid serves any size. Work-items advance by the grid's stride, along x within a row and
// along y from row to row. Launch the linear kernels with one row of work-items, because further
// rows would repeat the same stores: one work-item per 16 bytes, up to the number that fills the
// device.
//
// Source and destination must not overlap; otherwise the order of reads and writes is undefined. No
// byte outside the ranges is read or written.
//
// Most bytes are stored in 16-byte units at multiples of 16. The loads have the same size at any
// alignment of the source: GFX9 and later allow unaligned global memory accesses. (KFD sets
// SH_MEM_CONFIG.alignment_mode to "unaligned" in every queue, and the compiler's amdhsa target
// relies on it.) Ends with different alignments therefore need no special case.

// A 16-byte value at any alignment.
typedef struct __attribute__((packed)) {
  uint4 value;
} Unaligned16;

typedef struct {
  ulong first, stride;
} Share;

static Share share(uint dimension) {
  return (Share){get_global_id(dimension), get_global_size(dimension)};
}

// Number of bytes before the first multiple of 16, at most `bytes`.
static ulong head_of(global const uchar* to, ulong bytes) {
  return min((ulong)(-(ulong)to & 15), bytes);
}

static void copy_run(global uchar* to, global const uchar* from, ulong bytes, Share items) {
  const ulong head = head_of(to, bytes);
  const ulong units = (bytes - head) / 16;
  for (ulong i = items.first; i < head; i += items.stride) to[i] = from[i];
  global uint4* const units_to = (global uint4*)(to + head);
  global const Unaligned16* const units_from = (global const Unaligned16*)(from + head);
  for (ulong i = items.first; i < units; i += items.stride) units_to[i] = units_from[i].value;
  for (ulong i = head + units * 16 + items.first; i < bytes; i += items.stride) to[i] = from[i];
}

// Returns the 16 bytes at offset `count` of the repeated pattern.
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
  for (ulong i = head + units * 16 + items.first; i < bytes; i += items.stride)
    to[i] = (uchar)advanced(pattern, i).x;
}

kernel void copy_bytes(global uchar* to, global const uchar* from, ulong bytes) {
  copy_run(to, from, bytes, share(0));
}

kernel void copy_rows(global uchar* to, global const uchar* from, ulong width_bytes, ulong height,
                      ulong to_pitch, ulong from_pitch) {
  const Share rows = share(1);
  for (ulong row = rows.first; row < height; row += rows.stride)
    copy_run(to + row * to_pitch, from + row * from_pitch, width_bytes, share(0));
}

// Work-items advance along y through the rows of all slices.
kernel void copy_slices(global uchar* to, global const uchar* from, ulong width_bytes, ulong height,
                        ulong depth, ulong to_pitch, ulong from_pitch, ulong to_slice_pitch,
                        ulong from_slice_pitch) {
  const Share rows = share(1);
  for (ulong row = rows.first; row < height * depth; row += rows.stride) {
    const ulong slice = row / height, in_slice = row - slice * height;
    copy_run(to + slice * to_slice_pitch + in_slice * to_pitch,
             from + slice * from_slice_pitch + in_slice * from_pitch, width_bytes, share(0));
  }
}

kernel void fill_bytes(global uchar* to, ulong bytes, ulong low, ulong high) {
  fill_run(to, bytes, (ulong2)(low, high), share(0));
}

kernel void fill_rows(global uchar* to, ulong width_bytes, ulong height, ulong to_pitch, ulong low,
                      ulong high) {
  const Share rows = share(1);
  for (ulong row = rows.first; row < height; row += rows.stride)
    fill_run(to + row * to_pitch, width_bytes, (ulong2)(low, high), share(0));
}
