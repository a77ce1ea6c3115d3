#include "geometry.h"

// One pass of a bitonic sort. n stages sort 2^n keys; stage s (from 0) has s + 1 passes (from 0).
// Launch length/2 work-items per pass. Work-item i compares two keys, 2^(stage - pass) apart, and
// orders them as the run of 2^(stage + 1) keys that contains them requires. `ascending` (1 or 0) is
// the order of the finished array.
KERNEL void bitonic_sort(global uint* keys, uint stage, uint pass, uint ascending) {
  const uint item = global_id();
  const uint distance_log2 = stage - pass;
  const uint distance = 1u << distance_log2;
  const uint left = ((item >> distance_log2) << (distance_log2 + 1)) | (item & (distance - 1));
  const uint right = left + distance;
  const uint run_is_odd = (item >> stage) & 1u;

  const uint a = keys[left];
  const uint b = keys[right];
  const uint low = min(a, b);
  const uint high = max(a, b);
  const bool rising = run_is_odd != ascending;
  keys[left] = rising ? low : high;
  keys[right] = rising ? high : low;
}
