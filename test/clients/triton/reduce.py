"""Reductions: sums, extremes with their places, and a function of one's own, along both axes of a block."""

import numpy as np
import triton
import triton.language as tl

from device import Array, zeros


@triton.jit
def wider(a, b):
    return a ^ b


@triton.jit
def reduce(x, sums, places, folds, AXIS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    values = tl.load(x + rows[:, None] * COLUMNS + columns[None, :])
    kept = rows if AXIS == 1 else columns
    tl.store(sums + kept, tl.sum(values.to(tl.float32), AXIS))
    tl.store(places + kept, tl.argmax(values, AXIS))
    tl.store(folds + kept, tl.reduce(values, AXIS, wider))


x = np.random.default_rng(6).integers(-1000, 1000, (64, 128), np.int32)
for axis, kept in ((0, 128), (1, 64)):
    sums, places, folds = zeros(kept), zeros(kept, np.int32), zeros(kept, np.int32)
    reduce[(1,)](Array(x), sums, places, folds, AXIS=axis, ROWS=64, COLUMNS=128)
    np.testing.assert_array_equal(sums.numpy(), x.sum(axis))
    np.testing.assert_array_equal(places.numpy(), x.argmax(axis))
    np.testing.assert_array_equal(folds.numpy(), np.bitwise_xor.reduce(x, axis))
