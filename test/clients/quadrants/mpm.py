"""A block of jelly falls: the moving-least-squares material point method, in 2 dimensions.

Particles scatter mass and momentum to a grid by float atomics, and gather the grid's velocities. The
sums' order differs between runs, so that positions are compared with a tolerance.
"""

import numpy as np
import quadrants as qd

PARTICLES, GRID, STEPS = 256, 32, 20
DX, DT = 1 / GRID, 2e-4
VOLUME = (DX / 2) ** 2
STIFFNESS = 400.0


def simulate(arch):
    qd.init(arch=arch, default_fp=qd.f32)
    x = qd.Vector.field(2, qd.f32, PARTICLES)
    v = qd.Vector.field(2, qd.f32, PARTICLES)
    affine = qd.Matrix.field(2, 2, qd.f32, PARTICLES)
    density = qd.field(qd.f32, PARTICLES)
    momentum = qd.Vector.field(2, qd.f32, (GRID, GRID))
    mass = qd.field(qd.f32, (GRID, GRID))

    @qd.kernel
    def step():
        for i, j in mass:
            momentum[i, j] = [0.0, 0.0]
            mass[i, j] = 0.0
        for p in x:
            base = qd.cast(x[p] / DX - 0.5, qd.i32)
            fx = x[p] / DX - qd.cast(base, qd.f32)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            stress = -DT * 4 * STIFFNESS * VOLUME * (density[p] - 1) / DX**2
            affinity = qd.Matrix([[stress, 0.0], [0.0, stress]]) + VOLUME * affine[p]
            for i, j in qd.static(qd.ndrange(3, 3)):
                offset = qd.Vector([i, j])
                distance = (qd.cast(offset, qd.f32) - fx) * DX
                weight = w[i][0] * w[j][1]
                momentum[base + offset] += weight * (VOLUME * v[p] + affinity @ distance)
                mass[base + offset] += weight * VOLUME
        for i, j in mass:
            if mass[i, j] > 0:
                momentum[i, j] = momentum[i, j] / mass[i, j]
            momentum[i, j][1] -= DT * 9.8
            if (i < 3 and momentum[i, j][0] < 0) or (i > GRID - 3 and momentum[i, j][0] > 0):
                momentum[i, j][0] = 0.0
            if (j < 3 and momentum[i, j][1] < 0) or (j > GRID - 3 and momentum[i, j][1] > 0):
                momentum[i, j][1] = 0.0
        for p in x:
            base = qd.cast(x[p] / DX - 0.5, qd.i32)
            fx = x[p] / DX - qd.cast(base, qd.f32)
            w = [0.5 * (1.5 - fx) ** 2, 0.75 - (fx - 1) ** 2, 0.5 * (fx - 0.5) ** 2]
            velocity = qd.Vector([0.0, 0.0])
            gradient = qd.Matrix([[0.0, 0.0], [0.0, 0.0]])
            for i, j in qd.static(qd.ndrange(3, 3)):
                offset = qd.Vector([i, j])
                distance = (qd.cast(offset, qd.f32) - fx) * DX
                weight = w[i][0] * w[j][1]
                velocity += weight * momentum[base + offset]
                gradient += 4 * weight * momentum[base + offset].outer_product(distance) / DX**2
            v[p] = velocity
            x[p] += DT * velocity
            density[p] *= 1 + DT * gradient.trace()
            affine[p] = gradient

    random = np.random.default_rng(1)
    x.from_numpy((0.3 + 0.3 * random.random((PARTICLES, 2))).astype(np.float32))
    v.from_numpy(np.tile(np.float32([0.0, -3.0]), (PARTICLES, 1)))
    density.fill(1.0)
    for _ in range(STEPS):
        step()
    return x.to_numpy()


np.testing.assert_allclose(simulate(qd.amdgpu), simulate(qd.cpu), rtol=0, atol=1e-5)
