"""Operators: tinygrad fuses them into HIP kernels, which it compiles with the distribution's comgr."""

import numpy as np
from tinygrad import Tensor, dtypes


def compare(found, expected, tolerance=1e-5):
    np.testing.assert_allclose(found.numpy(), expected, rtol=tolerance, atol=tolerance)


random = np.random.default_rng(1)
a, b = random.standard_normal((2, 40, 50), np.float32)
x, y = Tensor(a), Tensor(b)

compare((x * 2 + y).sin().exp2(), np.exp2(np.sin(2 * a + b)))
compare(x.maximum(y), np.maximum(a, b))
compare(x.sum(axis=0), a.sum(0))
compare(x.max(axis=1), a.max(1))
compare(x.softmax(axis=1), np.exp(a) / np.exp(a).sum(1, keepdims=True))
compare(x.argmax(axis=1), a.argmax(1))
compare(x.cumsum(axis=1), a.cumsum(1), 1e-4)
compare(x.sort(dim=1)[0], np.sort(a, 1))
compare(x @ y.T, a @ b.T, 1e-4)
compare((x.half() @ y.half().T).float(), a.astype(np.float16) @ b.astype(np.float16).T, 3e-2)
compare((x > 0).where(x.sqrt(), y).isnan(), np.isnan(np.where(a > 0, np.sqrt(np.abs(a)), b)))
compare(x.reshape(50, 40).T[3:9, ::7].flip(0), a.reshape(50, 40).T[3:9, ::7][::-1])
compare(x.cast(dtypes.int32), a.astype(np.int32))
compare(x[Tensor([3, 1, 3])], a[[3, 1, 3]])

image, filters = random.standard_normal((2, 3, 12, 12), np.float32), random.standard_normal((4, 3, 3, 3), np.float32)
windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (2, 3))
compare(Tensor(image).conv2d(Tensor(filters)), np.einsum("ncyxij,fcij->nfyx", windows, filters), 1e-4)
