"""A mistake on purpose: a kernel of one's own reads LDS without after(), for which tinygrad puts a barrier."""

import numpy as np
from tinygrad import Tensor, dtypes
from tinygrad.dtype import AddrSpace
from tinygrad.uop.ops import KernelInfo, UOp

COUNT = 256


def reverse(y, x):
    lane = UOp.special(COUNT, "lidx0")
    shared = UOp.placeholder((COUNT,), dtypes.float, slot=0, addrspace=AddrSpace.LOCAL)
    filled = shared[lane].store(x[lane])
    return UOp.sink(filled, y[lane].store(shared[COUNT - 1 - lane]), arg=KernelInfo(name="reverse"))


x = Tensor(np.arange(COUNT, dtype=np.float32)).realize()
y = Tensor.empty(COUNT).custom_kernel(x, fxn=reverse)[0]
y.numpy()  # finds: races race
