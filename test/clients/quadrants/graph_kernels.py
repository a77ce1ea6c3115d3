"""A kernel of eight loops as a graph: HIP launches its eight dispatches by one call, again and again."""

import numpy as np
import quadrants as qd

COUNT = 1000

qd.init(arch=qd.amdgpu)


@qd.kernel(graph=True)
def rounds(x: qd.types.ndarray(qd.i32, ndim=1), y: qd.types.ndarray(qd.i32, ndim=1)):
    for i in range(COUNT):
        y[i] = x[(i + 1) % COUNT] + 1
    for i in range(COUNT):
        x[i] = y[(i + 7) % COUNT] * 3
    for i in range(COUNT):
        y[i] = x[(i + 49) % COUNT] - 5
    for i in range(COUNT):
        x[i] = y[(i + 343) % COUNT] ^ i
    for i in range(COUNT):
        y[i] = x[COUNT - 1 - i]
    for i in range(COUNT):
        x[i] = y[i] + x[i]
    for i in range(COUNT):
        y[i] = x[(i + 3) % COUNT] >> 1
    for i in range(COUNT):
        x[i] = y[(i + 11) % COUNT]


def expected(x):
    def turned(values, places):
        return np.roll(values, -places)

    y = turned(x, 1) + 1
    x = turned(y, 7) * 3
    y = turned(x, 49) - 5
    x = turned(y, 343) ^ np.arange(COUNT, dtype=np.int32)
    y = x[::-1]
    x = y + x
    return turned(turned(x, 3) >> 1, 11)


values = np.random.default_rng(2).integers(-1000, 1000, COUNT, np.int32)
x, y = qd.ndarray(qd.i32, COUNT), qd.ndarray(qd.i32, COUNT)
x.from_numpy(values)
for _ in range(5):
    rounds(x, y)
    values = expected(values)
np.testing.assert_array_equal(x.to_numpy(), values)
