"""A row of a softmax for each program, with the row's maximum and sum as reductions of a block."""

import numpy as np
import triton
import triton.language as tl

from device import Array, zeros


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0) * columns
    index = tl.arange(0, BLOCK)
    mask = index < columns
    values = tl.load(x + row + index, mask, other=-float("inf"))
    powers = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row + index, powers / tl.sum(powers, axis=0), mask)


x = 3 * np.random.default_rng(2).standard_normal((50, 300), np.float32)
y = zeros(x.shape)
softmax[(50,)](Array(x), y, 300, BLOCK=512)
powers = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
np.testing.assert_allclose(y.numpy(), powers / powers.sum(axis=1, keepdims=True), rtol=2e-6)
