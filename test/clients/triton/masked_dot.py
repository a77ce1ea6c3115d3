"""A product of matrices whose sizes are no multiples of any block: every load and store has its mask."""

import numpy as np
import triton
import triton.language as tl

from device import Array, zeros

M, N, K = 45, 70, 101


@triton.jit
def product(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = (tl.program_id(0) * BM + tl.arange(0, BM))[:, None]
    columns = (tl.program_id(1) * BN + tl.arange(0, BN))[None, :]
    sums = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        inner = first + tl.arange(0, BK)
        left = tl.load(a + rows * K + inner[None, :], (rows < M) & (inner[None, :] < K), other=0.0)
        right = tl.load(b + inner[:, None] * N + columns, (inner[:, None] < K) & (columns < N), other=0.0)
        sums = tl.dot(left, right, sums)
    tl.store(c + rows * N + columns, sums, (rows < M) & (columns < N))


random = np.random.default_rng(10)
a, b = (random.standard_normal(shape, np.float32).astype(np.float16) for shape in ((M, K), (K, N)))
c = zeros((M, N))
product[(triton.cdiv(M, 32), triton.cdiv(N, 32))](Array(a), Array(b), c, M, N, K, BM=32, BN=32, BK=32)
np.testing.assert_allclose(c.numpy(), a.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-5)
