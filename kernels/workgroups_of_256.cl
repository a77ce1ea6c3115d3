// The kernels of basics.cl and bitonic_sort.cl for workgroups of 256 work-items. They start faster,
// because they do not read their geometry.
#define WORKGROUP 256
#include "basics.cl"
#include "bitonic_sort.cl"
