"""Triton without PyTorch: arrays in device memory, and the driver that Triton asks for the device.

Triton's own HIPDriver asks torch.cuda for the device and its stream. The two classes below answer
in its place, so that a program needs NumPy, Triton and the distribution's libamdhip64.so alone.
Importing this module makes the driver the active one.
"""

import ctypes
import os
import weakref

import numpy as np
import triton
from triton.backends.amd.driver import HIPDriver, HIPLauncher, HIPUtils

# Unset, Triton 3.9 fuses multiplications with additions, and warns of the next version.
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

hip = ctypes.CDLL("libamdhip64.so")
hip.hipGetErrorString.restype = ctypes.c_char_p


def check(status):
    if status != 0:
        raise RuntimeError(hip.hipGetErrorString(status).decode())


class Array:
    """A copy of a NumPy array in device memory. Triton takes it for a tensor, since it has data_ptr() and dtype."""

    def __init__(self, host):
        host = np.ascontiguousarray(host)
        self.shape, self.host_dtype, self.nbytes = host.shape, host.dtype, host.nbytes
        # By name: Triton distinguishes types by their hash, which NumPy's types of 8 bits share.
        self.dtype = host.dtype.name
        self.address = ctypes.c_void_p()
        check(hip.hipMalloc(ctypes.byref(self.address), ctypes.c_size_t(self.nbytes)))
        weakref.finalize(self, hip.hipFree, self.address)  # at the program's end, too, unlike __del__
        check(hip.hipMemcpy(self.address, ctypes.c_void_p(host.ctypes.data), ctypes.c_size_t(self.nbytes), 1))

    def data_ptr(self):
        return self.address.value

    def numpy(self):
        """A copy in host memory. hipMemcpy waits for the kernels before it, which are in the same stream."""
        host = np.empty(self.shape, self.host_dtype)
        check(hip.hipMemcpy(ctypes.c_void_p(host.ctypes.data), self.address, ctypes.c_size_t(self.nbytes), 2))
        return host


def zeros(shape, dtype=np.float32):
    return Array(np.zeros(shape, dtype))


class Driver(HIPDriver):
    """One device, and HIP's null stream."""

    def __init__(self):
        self.utils = HIPUtils()  # compiles Triton's driver.c: needs a C compiler and Python.h
        self.launcher_cls = HIPLauncher

    def get_current_device(self):
        return 0

    def set_current_device(self, device):
        pass

    def get_current_stream(self, device):
        return 0


triton.runtime.driver.set_active(Driver())


def synchronize():
    check(hip.hipDeviceSynchronize())


def target():
    """gfx90a or gfx942."""
    return triton.runtime.driver.active.get_current_target().arch
