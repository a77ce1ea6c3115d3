"""A sum of each block's values, by a tree in shared memory with a barrier for each level."""

import numpy as np
import quadrants as qd

BLOCKS, BLOCK = 8, 128

qd.init(arch=qd.amdgpu)


@qd.kernel
def reduce(x: qd.types.ndarray(qd.i32, ndim=1), sums: qd.types.ndarray(qd.i32, ndim=1)):
    qd.loop_config(block_dim=BLOCK)
    for i in range(BLOCKS * BLOCK):
        shared = qd.simt.block.SharedArray((BLOCK,), qd.i32)
        lane = i % BLOCK
        shared[lane] = x[i]
        qd.simt.block.sync()
        for level in qd.static(range(7)):
            if lane < BLOCK >> (level + 1):
                shared[lane] += shared[lane + (BLOCK >> (level + 1))]
            qd.simt.block.sync()
        if lane == 0:
            sums[i // BLOCK] = shared[0]


values = np.random.default_rng(5).integers(-1000, 1000, BLOCKS * BLOCK, np.int32)
x, sums = qd.ndarray(qd.i32, BLOCKS * BLOCK), qd.ndarray(qd.i32, BLOCKS)
x.from_numpy(values)
reduce(x, sums)
np.testing.assert_array_equal(sums.to_numpy(), values.reshape(BLOCKS, BLOCK).sum(1))
