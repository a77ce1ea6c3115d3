// The same kernels, compiled for code object version 4: they read geometry from the packet.
#include "../../kernels/probes.cl"
