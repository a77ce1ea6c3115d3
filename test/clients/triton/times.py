"""Times of kernels of this folder's programs: on the GPU, or in Triton's interpreter."""

import os
import sys

import numpy as np

if os.environ.get("TRITON_INTERPRET") == "1":
    import times_host

    sys.modules["device"] = times_host

from add import add
from attention import forward
from device import Array, synchronize, zeros
from masked_dot import product
from row_times import row
from softmax import softmax

random = np.random.default_rng(1)


def launch(kernel, grid, *arguments, **constants):
    def call():
        kernel[grid](*arguments, **constants)
        synchronize()

    return call


a, b = random.standard_normal((2, 1 << 18), np.float32)
c = zeros(a.shape)
row("sum of two vectors of 262,144 float32", launch(add, (256,), Array(a), Array(b), c, a.size, BLOCK=1024))
np.testing.assert_array_equal(c.numpy(), a + b)

x = random.standard_normal((512, 1000), np.float32)
y = zeros(x.shape)
row("softmax, 512 rows of 1,000 float32", launch(softmax, (512,), Array(x), y, 1000, BLOCK=1024))
powers = np.exp(x - x.max(axis=1, keepdims=True))
np.testing.assert_allclose(y.numpy(), powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)

SIZE = 256
a, b = random.standard_normal((2, SIZE, SIZE), np.float32).astype(np.float16)
c = zeros((SIZE, SIZE))
grid = (SIZE // 64, SIZE // 64)
blocks = dict(BM=64, BN=64, BK=32)
row("matrix product, 256 x 256 x 256 float16", launch(product, grid, Array(a), Array(b), c, SIZE, SIZE, SIZE, **blocks))
np.testing.assert_allclose(c.numpy(), a.astype(np.float32) @ b.astype(np.float32), rtol=0, atol=1e-3)

shape = (4, 256, 64)
q, k, v = random.standard_normal((3, *shape), np.float32).astype(np.float16)
out, log_sums = zeros(shape), zeros(shape[:2])
arguments = [Array(q), Array(k), Array(v), out, log_sums, 0.125]
row(
    "flash attention, 4 heads of 256 x 64 float16",
    launch(forward, (8, 4), *arguments, LENGTH=256, SIZE=64, BLOCK=32),
)
scores = np.where(np.tri(256), q.astype(np.float32) @ k.astype(np.float32).swapaxes(1, 2) / 8, -np.inf)
powers = np.exp(scores - scores.max(2, keepdims=True))
expected = powers / powers.sum(2, keepdims=True) @ v.astype(np.float32)
np.testing.assert_allclose(out.numpy(), expected, rtol=2e-3, atol=2e-3)
