"""Times of recorded functions (TinyJit) on the GPU, or with tinygrad's CPU backend."""

import numpy as np
from tinygrad import Tensor, TinyJit

from row_times import row

random = np.random.default_rng(1)


def measure(name, function, reference, *inputs, tolerance=1e-4):
    recorded = TinyJit(lambda *tensors: function(*tensors).realize())
    tensors = [Tensor(one).realize() for one in inputs]
    row(name, lambda: recorded(*tensors).numpy())
    np.testing.assert_allclose(recorded(*tensors).numpy(), reference(*inputs), rtol=tolerance, atol=tolerance)


def softmax(x):
    powers = np.exp(x - x.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def convolution(images, filters):
    windows = np.lib.stride_tricks.sliding_window_view(images, (3, 3), (2, 3))
    return np.einsum("ncyxij,fcij->nfyx", windows, filters)


def normal(*shape):
    return random.standard_normal(shape, np.float32)


measure("matrix product, 256 x 256 x 256 float32", lambda a, b: a @ b, np.matmul, *normal(2, 256, 256), tolerance=1e-3)
measure("softmax, 512 rows of 1,000 float32", lambda x: x.softmax(axis=1), softmax, normal(512, 1000))
measure("sort of 64 rows of 256 float32", lambda x: x.sort(dim=1)[0], np.sort, normal(64, 256))
measure(
    "convolution, 8 images of 8 x 17 x 17 float32",
    lambda images, filters: images.conv2d(filters),
    convolution,
    normal(8, 8, 17, 17),
    normal(16, 8, 3, 3),
)
