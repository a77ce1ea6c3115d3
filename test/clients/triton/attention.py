"""Flash attention, forward and backward: the scores of a block live in registers and are never stored.

The forward pass keeps the logarithm of each row's sum. The backward pass recomputes the scores from it;
a program adds up the gradients of a block of keys, and those of the queries by float atomics.
"""

import numpy as np
import triton
import triton.language as tl

from device import Array, zeros

HEADS, LENGTH, SIZE = 2, 128, 64


@triton.jit
def forward(q, k, v, out, log_sums, scale, LENGTH: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr):
    head = tl.program_id(1) * LENGTH
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lane = tl.arange(0, SIZE)[None, :]
    queries = tl.load(q + (head + rows)[:, None] * SIZE + lane)
    highest = tl.full((BLOCK,), -float("inf"), tl.float32)
    sums = tl.zeros((BLOCK,), tl.float32)
    result = tl.zeros((BLOCK, SIZE), tl.float32)
    for first in range(0, (tl.program_id(0) + 1) * BLOCK, BLOCK):  # causal: no later keys
        columns = first + tl.arange(0, BLOCK)
        keys = tl.load(k + (head + columns)[:, None] * SIZE + lane)
        scores = tl.dot(queries, tl.trans(keys)) * scale
        scores = tl.where(rows[:, None] >= columns[None, :], scores, -float("inf"))
        now = tl.maximum(highest, tl.max(scores, 1))
        powers = tl.exp(scores - now[:, None])
        correction = tl.exp(highest - now)
        sums = sums * correction + tl.sum(powers, 1)
        values = tl.load(v + (head + columns)[:, None] * SIZE + lane)
        result = result * correction[:, None] + tl.dot(powers.to(tl.float16), values)
        highest = now
    tl.store(out + (head + rows)[:, None] * SIZE + lane, result / sums[:, None])
    tl.store(log_sums + head + rows, highest + tl.log(sums))


@triton.jit
def backward(
    q, k, v, out, dout, log_sums, dq, dk, dv, scale, LENGTH: tl.constexpr, SIZE: tl.constexpr, BLOCK: tl.constexpr
):
    head = tl.program_id(1) * LENGTH
    columns = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lane = tl.arange(0, SIZE)[None, :]
    keys = tl.load(k + (head + columns)[:, None] * SIZE + lane)
    values = tl.load(v + (head + columns)[:, None] * SIZE + lane)
    key_slopes = tl.zeros((BLOCK, SIZE), tl.float32)
    value_slopes = tl.zeros((BLOCK, SIZE), tl.float32)
    for first in range(tl.program_id(0) * BLOCK, LENGTH, BLOCK):
        rows = first + tl.arange(0, BLOCK)
        index = (head + rows)[:, None] * SIZE + lane
        queries, slopes = tl.load(q + index), tl.load(dout + index)
        scores = tl.dot(queries, tl.trans(keys)) * scale - tl.load(log_sums + head + rows)[:, None]
        powers = tl.where(rows[:, None] >= columns[None, :], tl.exp(scores), 0.0)
        value_slopes += tl.dot(tl.trans(powers.to(tl.float16)), slopes)
        along = tl.sum(tl.load(out + index) * slopes.to(tl.float32), 1)
        changes = powers * (tl.dot(slopes, tl.trans(values)) - along[:, None]) * scale
        key_slopes += tl.dot(tl.trans(changes.to(tl.float16)), queries)
        tl.atomic_add(dq + index, tl.dot(changes.to(tl.float16), keys))
    tl.store(dk + (head + columns)[:, None] * SIZE + lane, key_slopes)
    tl.store(dv + (head + columns)[:, None] * SIZE + lane, value_slopes)


random = np.random.default_rng(11)
shape = (HEADS, LENGTH, SIZE)
q, k, v, dout = random.standard_normal((4, *shape), np.float32).astype(np.float16)
scale = SIZE**-0.5
out, dq, dk, dv = (zeros(shape) for _ in range(4))
log_sums = zeros((HEADS, LENGTH))
inputs = [Array(host) for host in (q, k, v)]
grid = (LENGTH // 32, HEADS)
forward[grid](*inputs, out, log_sums, scale, LENGTH, SIZE, BLOCK=32)
backward[grid](*inputs, out, Array(dout), log_sums, dq, dk, dv, scale, LENGTH, SIZE, BLOCK=32)

q, k, v, dout = (host.astype(np.float64) for host in (q, k, v, dout))
scores = np.where(np.tri(LENGTH), q @ k.swapaxes(1, 2) * scale, -np.inf)
powers = np.exp(scores - scores.max(2, keepdims=True))
powers /= powers.sum(2, keepdims=True)
slopes = dout @ v.swapaxes(1, 2)
changes = powers * (slopes - (powers * slopes).sum(2, keepdims=True)) * scale
# The scores are rounded to float16 before they are multiplied.
np.testing.assert_allclose(out.numpy(), powers @ v, rtol=2e-3, atol=2e-3)
np.testing.assert_allclose(dv.numpy(), powers.swapaxes(1, 2) @ dout, rtol=2e-3, atol=4e-3)
np.testing.assert_allclose(dk.numpy(), changes.swapaxes(1, 2) @ q, rtol=2e-3, atol=4e-3)
np.testing.assert_allclose(dq.numpy(), changes @ k, rtol=2e-3, atol=4e-3)
