"""Reverse-mode derivatives: gradient descent finds the line that the data was made from."""

import numpy as np
import quadrants as qd

COUNT = 200


def gradients(arch):
    qd.init(arch=arch, default_fp=qd.f32)
    x, y = qd.field(qd.f32, COUNT), qd.field(qd.f32, COUNT)
    slope, offset, loss = (qd.field(qd.f32, (), needs_grad=True) for _ in range(3))

    @qd.kernel
    def error():
        for i in range(COUNT):
            loss[None] += (qd.sin(slope[None] * x[i]) + offset[None] - y[i]) ** 2 / COUNT

    random = np.random.default_rng(3)
    inputs = random.standard_normal(COUNT, np.float32)
    x.from_numpy(inputs)
    y.from_numpy(np.sin(0.7 * inputs) + np.float32(0.25))
    slope[None], offset[None] = 0.2, 0.0
    seen = []
    for _ in range(10):
        loss[None] = 0
        with qd.ad.Tape(loss):
            error()
        seen.append((loss[None], slope.grad[None], offset.grad[None]))
        slope[None] -= 0.3 * slope.grad[None]
        offset[None] -= 0.3 * offset.grad[None]
    return np.array(seen)


found = gradients(qd.amdgpu)
np.testing.assert_allclose(found, gradients(qd.cpu), rtol=1e-3, atol=1e-5)
assert found[-1, 0] < found[0, 0] / 20, "the loss does not fall"
