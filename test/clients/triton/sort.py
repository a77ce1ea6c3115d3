"""A sort of each row of a block, in both directions, and the largest values of a row."""

import numpy as np
import triton
import triton.language as tl

from device import Array, zeros


@triton.jit
def sort(x, up, down, largest, ROWS: tl.constexpr, COLUMNS: tl.constexpr, TOP: tl.constexpr):
    rows = tl.arange(0, ROWS)[:, None]
    index = rows * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    values = tl.load(x + index)
    tl.store(up + index, tl.sort(values))
    tl.store(down + index, tl.sort(values, descending=True))
    tl.store(largest + rows * TOP + tl.arange(0, TOP)[None, :], tl.topk(values, TOP))


x = np.random.default_rng(8).standard_normal((16, 128), np.float32)
up, down, largest = zeros(x.shape), zeros(x.shape), zeros((16, 8))
sort[(1,)](Array(x), up, down, largest, ROWS=16, COLUMNS=128, TOP=8)
np.testing.assert_array_equal(up.numpy(), np.sort(x))
np.testing.assert_array_equal(down.numpy(), np.sort(x)[:, ::-1])
np.testing.assert_array_equal(largest.numpy(), np.sort(x)[:, :-9:-1])
