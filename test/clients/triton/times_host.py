"""The names of device.py for Triton's interpreter (TRITON_INTERPRET=1), Triton's own way without a GPU."""

import numpy as np


class Array:
    """A NumPy array as the tensor that the interpreter expects: copies to and from the host are the array itself."""

    def __init__(self, host):
        self.host = np.array(host)
        self.dtype = host.dtype.name

    def data_ptr(self):
        return self.host.ctypes.data

    def numpy(self):
        return self.host.copy()

    def untyped_storage(self):
        return self

    def cpu(self):
        return self

    def new_empty(self, *shape, device):
        return self

    def set_(self, storage, offset, size, stride):
        pass

    def copy_(self, storage):
        pass

    def storage_offset(self):
        return 0

    def size(self):
        return self.host.shape

    def stride(self):
        return [step // self.host.itemsize for step in self.host.strides]


def zeros(shape, dtype=np.float32):
    return Array(np.zeros(shape, dtype))


def synchronize():
    pass
