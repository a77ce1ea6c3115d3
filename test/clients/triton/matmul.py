"""Matrix products of every type that the GPU's matrix instructions take, and their results."""

import ml_dtypes
import numpy as np
import triton
import triton.language as tl

from device import Array, target, zeros

M, N, K = 64, 96, 160


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    sums = tl.zeros((BM, BN), tl.int32 if a.dtype.element_ty == tl.int8 else tl.float32)
    for first in range(0, K, BK):
        inner = first + tl.arange(0, BK)
        left = tl.load(a + rows[:, None] * K + inner[None, :])
        right = tl.load(b + inner[:, None] * N + columns[None, :])
        sums = tl.dot(left, right, sums, input_precision=PRECISION)
    tl.store(c + rows[:, None] * N + columns[None, :], sums)


def compare(dtype, tolerance, precision="ieee"):
    random = np.random.default_rng(4)
    if dtype == np.int8:
        a, b = random.integers(-128, 128, (M, K), dtype), random.integers(-128, 128, (K, N), dtype)
    else:
        a, b = (random.standard_normal(shape, np.float32).astype(dtype) for shape in ((M, K), (K, N)))
    c = zeros((M, N), np.int32 if dtype == np.int8 else np.float32)
    product[(M // 32, N // 32)](Array(a), Array(b), c, M, N, K, BM=32, BN=32, BK=32, PRECISION=precision)
    wide = np.int64 if dtype == np.int8 else np.float64
    a, b = a.astype(wide), b.astype(wide)
    # The error of a sum of products is relative to the sum of their magnitudes.
    assert np.all(np.abs(c.numpy() - a @ b) <= tolerance * (np.abs(a) @ np.abs(b))), (dtype, precision)


# The products of the short types are exact in float32, where they are added.
compare(np.float16, 1e-6)
compare(ml_dtypes.bfloat16, 1e-6)
compare(np.float32, 1e-6)
compare(np.int8, 0)
if target() == "gfx942":
    compare(np.float32, 2e-3, precision="tf32")  # xf32: inputs of 10 bits of mantissa
    compare(ml_dtypes.float8_e4m3fnuz, 1e-6)
    compare(ml_dtypes.float8_e5m2fnuz, 1e-6)
