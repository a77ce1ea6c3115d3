// The same kernels through LLVM's second instruction selector.
#include "same_source.cl"
