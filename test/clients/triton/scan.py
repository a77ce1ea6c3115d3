"""Scans: a running sum, one from the end, and a linear recurrence as an associative function of pairs."""

import numpy as np
import triton
import triton.language as tl

from device import Array, zeros


@triton.jit
def then(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2


@triton.jit
def scan(x, factors, sums, backward, states, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    index = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    values, factor = tl.load(x + index), tl.load(factors + index)
    tl.store(sums + index, tl.cumsum(values, 1))
    tl.store(backward + index, tl.cumsum(values, 0, reverse=True))
    _, state = tl.associative_scan((factor, values), 1, then)
    tl.store(states + index, state)


random = np.random.default_rng(7)
x = random.integers(-8, 8, (32, 64)).astype(np.float32)
factors = random.choice(np.float32([-0.5, 0.5]), (32, 64))
sums, backward, states = zeros(x.shape), zeros(x.shape), zeros(x.shape)
scan[(1,)](Array(x), Array(factors), sums, backward, states, ROWS=32, COLUMNS=64)
np.testing.assert_array_equal(sums.numpy(), x.cumsum(1))
np.testing.assert_array_equal(backward.numpy(), x[::-1].cumsum(0)[::-1])
state, expected = np.zeros(32), np.empty(x.shape)
for column in range(64):
    state = state * factors[:, column] + x[:, column]
    expected[:, column] = state
np.testing.assert_allclose(states.numpy(), expected, rtol=1e-6, atol=1e-6)
