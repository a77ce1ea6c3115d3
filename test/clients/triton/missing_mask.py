"""A mistake on purpose: the last program's loads and stores have no mask and pass the end of the arrays."""

import numpy as np
import triton
import triton.language as tl

from device import Array, zeros


@triton.jit
def double(x, y, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + index, 2 * tl.load(x + index))  # finds: memory out-of-bounds


x = np.arange(1000, dtype=np.float32)
y = zeros(1000)
double[(triton.cdiv(1000, 256),)](Array(x), y, BLOCK=256)
y.numpy()
