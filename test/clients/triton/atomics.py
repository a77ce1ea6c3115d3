"""Atomics of many programs on a few words: sums, extremes, exchanges, and a lock by compare-and-swap."""

import numpy as np
import triton
import triton.language as tl

from device import Array, zeros


@triton.jit
def histogram(x, bins, sums, extremes, BLOCK: tl.constexpr):
    values = tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.atomic_add(bins + values % 16, 1)
    tl.atomic_add(sums + values % 16, values.to(tl.float32))
    tl.atomic_max(extremes + values % 16, values)


@triton.jit
def locked(lock, counter):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    # The CAS acquires and the exchange releases, so that the plain accesses between them are ordered.
    count = tl.load(counter, volatile=True)
    tl.debug_barrier()  # each wave has loaded, and the first one stores
    tl.store(counter, count + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


x = np.random.default_rng(9).integers(0, 1000, 8192, np.int32)
bins, sums, extremes = zeros(16, np.int32), zeros(16), zeros(16, np.int32)
histogram[(16,)](Array(x), bins, sums, extremes, BLOCK=512)
np.testing.assert_array_equal(bins.numpy(), np.bincount(x % 16, minlength=16))
np.testing.assert_array_equal(sums.numpy(), np.bincount(x % 16, weights=x, minlength=16))
np.testing.assert_array_equal(extremes.numpy(), [x[x % 16 == bin].max() for bin in range(16)])

lock, counter = zeros(1, np.int32), zeros(1, np.int32)
locked[(40,)](lock, counter)
np.testing.assert_array_equal(counter.numpy(), [40])
