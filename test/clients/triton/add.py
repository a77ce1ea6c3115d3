"""The first kernel of every tutorial: the sum of two vectors whose length is no multiple of the block."""

import numpy as np
import triton
import triton.language as tl

from device import Array, zeros


@triton.jit
def add(a, b, c, count, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = index < count
    tl.store(c + index, tl.load(a + index, mask) + tl.load(b + index, mask), mask)


random = np.random.default_rng(1)
a, b = random.standard_normal((2, 5000), np.float32)
c = zeros(5000)
add[(triton.cdiv(5000, 256),)](Array(a), Array(b), c, 5000, BLOCK=256)
np.testing.assert_array_equal(c.numpy(), a + b)
