"""A mistake on purpose: no barrier between the threads that fill LDS and the threads that read it."""

from max.gpu import thread_idx
from max.gpu.host import DeviceContext
from max.gpu.memory import AddressSpace
from std.memory import stack_allocation

comptime COUNT = 256


def reverse(x: Pointer[Int32, MutAnyOrigin], y: Pointer[Int32, MutAnyOrigin]):
    var shared = stack_allocation[COUNT, Int32, address_space=AddressSpace.SHARED]()
    var lane = Int(thread_idx.x)
    shared[unsafe_offset=lane] = x[unsafe_offset=lane]
    y[unsafe_offset=lane] = shared[unsafe_offset=COUNT - 1 - lane]  # finds: races race


def main() raises:
    var context = DeviceContext()
    var x = context.enqueue_create_buffer[DType.int32](COUNT)
    var y = context.enqueue_create_buffer[DType.int32](COUNT)
    x.enqueue_fill(1)
    context.enqueue_function[reverse](x, y, grid_dim=1, block_dim=COUNT)
    context.synchronize()
