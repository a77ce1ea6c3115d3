"""Products of block-scaled matrices (OCP MX): 32 values of 8 or 4 bits share a power of two.

Neither GPU has an instruction for them: Triton converts both sides to bfloat16, in which these values
are exact.
"""

import ml_dtypes
import numpy as np
import triton
import triton.language as tl

from device import Array, zeros

M, N, K = 64, 32, 128


@triton.jit
def product(
    a, a_scale, b, b_scale, c, A: tl.constexpr, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):
    A_PACKED: tl.constexpr = K // 2 if A == "e2m1" else K
    B_PACKED: tl.constexpr = K // 2 if B == "e2m1" else K
    rows, columns, blocks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K // 32)
    left = tl.load(a + rows[:, None] * A_PACKED + tl.arange(0, A_PACKED)[None, :])
    right = tl.load(b + tl.arange(0, B_PACKED)[:, None] * N + columns[None, :])
    left_scale = tl.load(a_scale + rows[:, None] * (K // 32) + blocks[None, :])
    right_scale = tl.load(b_scale + columns[:, None] * (K // 32) + blocks[None, :])
    sums = tl.dot_scaled(left, left_scale, A, right, right_scale, B)
    tl.store(c + rows[:, None] * N + columns[None, :], sums)


DTYPES = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2, "e2m1": ml_dtypes.float4_e2m1fn}


def matrix(random, shape, name, k_axis):
    """The values of a matrix, and the bytes that the kernel reads. Two values of 4 bits share a byte, along K."""
    values = random.standard_normal(shape, np.float32).astype(DTYPES[name])
    data = values.view(np.uint8)
    if name == "e2m1":
        low, high = (np.take(data, range(first, K, 2), k_axis) & 15 for first in (0, 1))
        data = low | high << 4
    return values.astype(np.float64), data


def compare(left, right):
    random = np.random.default_rng(5)
    a, a_data = matrix(random, (M, K), left, 1)
    b, b_data = matrix(random, (K, N), right, 0)
    a_scale, b_scale = (random.integers(120, 135, (rows, K // 32), np.uint8) for rows in (M, N))
    c = zeros((M, N))
    product[(1,)](Array(a_data), Array(a_scale), Array(b_data), Array(b_scale), c, left, right, M, N, K)
    a *= np.repeat(np.exp2(a_scale.astype(np.float64) - 127), 32, axis=1)
    b *= np.repeat(np.exp2(b_scale.astype(np.float64) - 127), 32, axis=1).T
    assert np.all(np.abs(c.numpy() - a @ b) <= 1e-6 * (np.abs(a) @ np.abs(b))), (left, right)


compare("e4m3", "e4m3")
compare("e5m2", "e4m3")
compare("e2m1", "e2m1")
