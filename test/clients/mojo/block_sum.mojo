"""A sum of each block's values, by a tree in LDS with a barrier for each level."""

from max.gpu import barrier, block_idx, thread_idx
from max.gpu.host import DeviceContext
from max.gpu.memory import AddressSpace
from std.memory import stack_allocation

comptime BLOCKS = 8
comptime BLOCK = 128


def sum_blocks(x: Pointer[Int32, MutAnyOrigin], sums: Pointer[Int32, MutAnyOrigin]):
    var shared = stack_allocation[BLOCK, Int32, address_space=AddressSpace.SHARED]()
    var lane = Int(thread_idx.x)
    shared[unsafe_offset=lane] = x[unsafe_offset=Int(block_idx.x) * BLOCK + lane]
    barrier()
    var half = BLOCK // 2
    while half > 0:
        if lane < half:
            shared[unsafe_offset=lane] += shared[unsafe_offset=lane + half]
        barrier()
        half //= 2
    if lane == 0:
        sums[unsafe_offset=Int(block_idx.x)] = shared[unsafe_offset=0]


def main() raises:
    var context = DeviceContext()
    var x = context.enqueue_create_buffer[DType.int32](BLOCKS * BLOCK)
    var sums = context.enqueue_create_buffer[DType.int32](BLOCKS)
    with x.map_to_host() as host:
        for i in range(BLOCKS * BLOCK):
            host[i] = Int32((i * 7919) % 1000 - 500)
    context.enqueue_function[sum_blocks](x, sums, grid_dim=BLOCKS, block_dim=BLOCK)
    with sums.map_to_host() as host:
        for block in range(BLOCKS):
            var expected = 0
            for i in range(BLOCK):
                expected += ((block * BLOCK + i) * 7919) % 1000 - 500
            if Int(host[block]) != expected:
                raise Error("block ", block, ": ", host[block], " and not ", expected)
