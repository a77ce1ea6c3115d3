// Merges two sorted runs into one.
//
// Each work-item writes OUTPUTS consecutive keys. It finds by a binary search how many keys of the
// left run precede its first output (the "merge path" of Odeh, Green, Mwassi, Shmueli and Birk).
#define WORKGROUP 256
#define OUTPUTS 8

kernel __attribute__((reqd_work_group_size(WORKGROUP, 1, 1))) void merge_runs(
    global const uint* left, uint left_count, global const uint* right, uint right_count,
    global uint* out) {
  const uint begin = (get_group_id(0) * WORKGROUP + get_local_id(0)) * OUTPUTS;
  const uint total = left_count + right_count;
  if (begin >= total) return;

  uint low = begin > right_count ? begin - right_count : 0;
  uint high = min(begin, left_count);
  while (low < high) {
    const uint middle = low + (high - low) / 2;
    if (left[middle] <= right[begin - 1 - middle])
      low = middle + 1;
    else
      high = middle;
  }

  uint l = low, r = begin - low;
  const uint end = min(begin + OUTPUTS, total);
  for (uint i = begin; i < end; ++i) {
    const bool from_left = r == right_count || (l < left_count && left[l] <= right[r]);
    out[i] = from_left ? left[l] : right[r];
    l += from_left ? 1 : 0;
    r += from_left ? 0 : 1;
  }
}
