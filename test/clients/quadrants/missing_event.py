"""A mistake on purpose: nothing makes the second stream wait for the first."""

import quadrants as qd

COUNT = 4096

qd.init(arch=qd.amdgpu)


@qd.kernel
def fill(x: qd.types.ndarray(qd.i32, ndim=1)):
    for i in range(COUNT):
        x[i] = i


@qd.kernel
def add(x: qd.types.ndarray(qd.i32, ndim=1), y: qd.types.ndarray(qd.i32, ndim=1)):
    for i in range(COUNT):
        y[i] = x[i] + 1


x, y = qd.ndarray(qd.i32, COUNT), qd.ndarray(qd.i32, COUNT)
fill(x)
add(x, y)  # now both kernels are compiled and loaded
qd.sync()
first, second = qd.create_stream(), qd.create_stream()
fill(x, qd_stream=first)
add(x, y, qd_stream=second)  # finds: fences unordered
first.synchronize()
second.synchronize()
y.to_numpy()
