"""A layer norm, forward and backward: the gradients of weight and bias are sums over all rows, by float atomics."""

import numpy as np
import triton
import triton.language as tl

from device import Array, zeros

EPSILON = 1e-5
ROWS, COLUMNS = 40, 200


@triton.jit
def forward(x, y, weight, bias, mean, rstd, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    index = tl.arange(0, BLOCK)
    mask = index < columns
    values = tl.load(x + row * columns + index, mask, other=0.0)
    average = tl.sum(values, axis=0) / columns
    centred = tl.where(mask, values - average, 0.0)
    factor = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + epsilon)
    tl.store(mean + row, average)
    tl.store(rstd + row, factor)
    scaled = centred * factor * tl.load(weight + index, mask) + tl.load(bias + index, mask)
    tl.store(y + row * columns + index, scaled, mask)


@triton.jit
def backward(dy, x, weight, mean, rstd, dx, dweight, dbias, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    index = tl.arange(0, BLOCK)
    mask = index < columns
    slope = tl.load(dy + row * columns + index, mask, other=0.0)
    factor = tl.load(rstd + row)
    normal = (tl.load(x + row * columns + index, mask, other=0.0) - tl.load(mean + row)) * factor
    normal = tl.where(mask, normal, 0.0)
    weighted = slope * tl.load(weight + index, mask, other=0.0)
    along = tl.sum(weighted * normal, axis=0) / columns
    average = tl.sum(weighted, axis=0) / columns
    tl.store(dx + row * columns + index, (weighted - normal * along - average) * factor, mask)
    tl.atomic_add(dweight + index, slope * normal, mask)
    tl.atomic_add(dbias + index, slope, mask)


random = np.random.default_rng(3)
x, dy = random.standard_normal((2, ROWS, COLUMNS), np.float32)
weight, bias = random.standard_normal((2, COLUMNS), np.float32)
device = {name: Array(host) for name, host in dict(x=x, dy=dy, weight=weight, bias=bias).items()}
y, dx, mean, rstd = zeros(x.shape), zeros(x.shape), zeros(ROWS), zeros(ROWS)
dweight, dbias = zeros(COLUMNS), zeros(COLUMNS)
forward[(ROWS,)](device["x"], y, device["weight"], device["bias"], mean, rstd, COLUMNS, EPSILON, BLOCK=256)
backward[(ROWS,)](device["dy"], device["x"], device["weight"], mean, rstd, dx, dweight, dbias, COLUMNS, BLOCK=256)

x, dy, weight = x.astype(np.float64), dy.astype(np.float64), weight.astype(np.float64)
factor = 1 / np.sqrt(x.var(axis=1, keepdims=True) + EPSILON)
normal = (x - x.mean(axis=1, keepdims=True)) * factor
weighted = dy * weight
along = (weighted * normal).mean(axis=1, keepdims=True)
np.testing.assert_allclose(y.numpy(), normal * weight + bias, rtol=1e-5, atol=1e-5)
np.testing.assert_allclose(
    dx.numpy(), (weighted - normal * along - weighted.mean(axis=1, keepdims=True)) * factor, rtol=1e-5, atol=1e-5
)
np.testing.assert_allclose(dweight.numpy(), (dy * normal).sum(axis=0), rtol=1e-5, atol=1e-5)
np.testing.assert_allclose(dbias.numpy(), dy.sum(axis=0), rtol=1e-5, atol=1e-5)
