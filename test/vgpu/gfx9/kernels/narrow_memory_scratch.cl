// The same kernels, compiled to reach private memory by SCRATCH instructions.
#include "narrow_memory.cl"
