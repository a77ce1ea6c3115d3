"""Two streams, joined by an event: the second stream's kernel reads what the first stream's kernel writes."""

import numpy as np
import quadrants as qd

COUNT = 4096

qd.init(arch=qd.amdgpu)


@qd.kernel
def fill(x: qd.types.ndarray(qd.i32, ndim=1), value: qd.i32):
    for i in range(COUNT):
        x[i] = value + i


@qd.kernel
def add(x: qd.types.ndarray(qd.i32, ndim=1), y: qd.types.ndarray(qd.i32, ndim=1)):
    for i in range(COUNT):
        y[i] += x[i]


x, y = qd.ndarray(qd.i32, COUNT), qd.ndarray(qd.i32, COUNT)
y.fill(0)
qd.sync()
first, second = qd.create_stream(), qd.create_stream()
filled, added = qd.create_event(), qd.create_event()
for value in range(4):
    fill(x, value, qd_stream=first)
    filled.record(first)
    filled.wait(second)
    add(x, y, qd_stream=second)
    added.record(second)
    added.wait(first)  # the next fill() overwrites what add() reads
second.synchronize()
np.testing.assert_array_equal(y.to_numpy(), 4 * np.arange(COUNT) + 6)
