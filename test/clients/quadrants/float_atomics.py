"""Float atomics: sums in single and double precision, and extremes, of values that threads share."""

import numpy as np
import quadrants as qd

COUNT = 5000

qd.init(arch=qd.amdgpu)


@qd.kernel
def collect(
    x: qd.types.ndarray(qd.f32, ndim=1),
    sums: qd.types.ndarray(qd.f32, ndim=1),
    doubles: qd.types.ndarray(qd.f64, ndim=1),
    extremes: qd.types.ndarray(qd.f32, ndim=1),
):
    for i in range(COUNT):
        qd.atomic_add(sums[i % 7], x[i])
        qd.atomic_sub(doubles[i % 7], qd.cast(x[i], qd.f64))
        qd.atomic_min(extremes[0], x[i])
        qd.atomic_max(extremes[1], x[i])


values = np.random.default_rng(4).standard_normal(COUNT, np.float32)
x, sums, extremes = qd.ndarray(qd.f32, COUNT), qd.ndarray(qd.f32, 7), qd.ndarray(qd.f32, 2)
doubles = qd.ndarray(qd.f64, 7)
x.from_numpy(values)
for array in (sums, doubles, extremes):
    array.fill(0)
collect(x, sums, doubles, extremes)
expected = np.array([values[bin::7].sum(dtype=np.float64) for bin in range(7)])
np.testing.assert_allclose(sums.to_numpy(), expected, rtol=1e-5, atol=1e-4)
np.testing.assert_allclose(doubles.to_numpy(), -expected, rtol=1e-12, atol=1e-12)
np.testing.assert_array_equal(extremes.to_numpy(), [values.min(), values.max()])
