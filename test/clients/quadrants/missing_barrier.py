"""A mistake on purpose: no barrier between the stores to shared memory and the loads of what others stored."""

import numpy as np
import quadrants as qd

BLOCK = 256

qd.init(arch=qd.amdgpu)


@qd.kernel
def reverse(x: qd.types.ndarray(qd.i32, ndim=1), y: qd.types.ndarray(qd.i32, ndim=1)):
    qd.loop_config(block_dim=BLOCK)
    for i in range(BLOCK):
        shared = qd.simt.block.SharedArray((BLOCK,), qd.i32)
        shared[i] = x[i]
        y[i] = shared[BLOCK - 1 - i]


x, y = qd.ndarray(qd.i32, BLOCK), qd.ndarray(qd.i32, BLOCK)
x.from_numpy(np.arange(BLOCK, dtype=np.int32))
reverse(x, y)  # finds: races race
y.to_numpy()
