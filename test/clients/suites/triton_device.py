"""A plugin of pytest, with which Triton's own tests run on Triton's HIP driver beside a PyTorch that
has no GPU.

Triton's tests keep their data in PyTorch's tensors on the device "cuda". PyTorch for AMD GPUs asks for
HIP 7, and Debian's knows the CPU alone. So a test's tensors stay in host memory, and around each
launch their storages are copied to the device and back:

  * "cuda" in a call of PyTorch means "cpu"; as gfx90a, factors of a matrix product lose their
    denormals before the CPU multiplies them, as on that GPU, with which a test compares;
  * the few functions of torch.cuda that the tests call answer for device 0;
  * the driver is that of ../triton/device.py, Triton's but for what it would ask of torch.cuda;
  * the launcher is Triton's, with addresses of device memory in the tensors' place.

A storage has one copy for all of its views, so that arguments which overlap do so on the device, too.
An address that a test itself reads with data_ptr(), and passes as a number, is the host's: no kernel
can use it.
"""

import contextlib
import copy
import ctypes
import pathlib
import sys
import types

import pytest
import torch
import triton
from torch.overrides import TorchFunctionMode
from triton.backends.amd.driver import HIPDriver, HIPLauncher

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "triton"))
import device
from device import check, hip

TO_DEVICE, TO_HOST = 1, 2  # hipMemcpyKind

MATRIX_PRODUCTS = torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.mm, torch.bmm


class Address:
    """Stands for a tensor in the arguments of a launch."""

    def __init__(self, address):
        self.address = address

    def data_ptr(self):
        return self.address


class Copies:
    """Device memory with the storages of a launch's arguments."""

    def __init__(self):
        self.of_storage = {}  # by the host's address: the storage, and the device's address

    def on_device(self, argument):
        """The argument for the kernel: the same, with an Address for each tensor."""
        if isinstance(argument, torch.Tensor):
            storage = argument.untyped_storage()
            return Address(self.copied(storage) + argument.data_ptr() - storage.data_ptr())
        if isinstance(argument, tuple):
            return tuple(self.on_device(one) for one in argument)
        if isinstance(getattr(argument, "base", None), (torch.Tensor, triton.runtime.jit.TensorWrapper)):
            # A tensor descriptor, or a tensor seen as of another type.
            argument = copy.copy(argument)
            argument.base = self.on_device(argument.base)
        return argument

    def copied(self, storage):
        host = storage.data_ptr()
        if host not in self.of_storage:
            device, size = ctypes.c_void_p(), ctypes.c_size_t(storage.nbytes())
            check(hip.hipMalloc(ctypes.byref(device), size))
            self.of_storage[host] = storage, device
            check(hip.hipMemcpy(device, ctypes.c_void_p(host), size, TO_DEVICE))
        return self.of_storage[host][1].value or 0

    def copy_back(self):
        check(hip.hipDeviceSynchronize())  # with the kernel's error
        ctypes.CDLL(None).fflush(None)  # what it printed, into the test's file
        for host, (storage, device) in self.of_storage.items():
            check(hip.hipMemcpy(ctypes.c_void_p(host), device, ctypes.c_size_t(storage.nbytes()), TO_HOST))

    def free(self):
        for _, device in self.of_storage.values():
            hip.hipFree(device)


class Launcher(HIPLauncher):
    def __init__(self, source, metadata):
        super().__init__(source, metadata)
        launch = self.launch

        def launch_with_copies(*arguments):
            # Among others the scratch memory from the test's allocator, and, last, the kernel's arguments.
            copies = Copies()
            try:
                launch(*(copies.on_device(one) for one in arguments))
                copies.copy_back()
            finally:
                copies.free()

        self.launch = launch_with_copies


class Driver(device.Driver):
    def __init__(self):
        super().__init__()
        self.launcher_cls = Launcher


def on_host(value):
    """The argument of a call of PyTorch, with the CPU in the GPU's place."""
    is_gpu = isinstance(value, (str, torch.device)) and str(value).startswith("cuda")
    return "cpu" if is_gpu else value


def without_denormals(value):
    """A factor of 16 bits as gfx90a's matrix instructions take it, with which PyTorch multiplies there."""
    if isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16):
        return torch.where(value.abs() < torch.finfo(value.dtype).tiny, 0, value)
    return value


class OnHost(TorchFunctionMode):
    def __init__(self, target):
        super().__init__()
        self.flushes = target == "gfx90a"

    def __torch_function__(self, function, types, arguments=(), keywords=None):
        keywords = {name: on_host(value) for name, value in (keywords or {}).items()}
        if self.flushes and function in MATRIX_PRODUCTS:
            arguments = map(without_denormals, arguments)
        return function(*map(on_host, arguments), **keywords)


def answer_for_torch(driver):
    """What the tests ask torch.cuda, as PyTorch for AMD GPUs answers."""
    capability = {"gfx90a": (9, 0), "gfx942": (9, 4)}[driver.get_current_target().arch]
    units = driver.utils.get_device_properties(0)["multiprocessor_count"]
    torch.cuda.get_device_capability = lambda device=None: capability
    torch.cuda.get_device_properties = lambda device=None: types.SimpleNamespace(multi_processor_count=units)
    torch.version.hip = "6.4"  # some tests are skipped on AMD GPUs by this
    torch.cuda.current_device = lambda: 0
    torch.cuda.device = lambda device: contextlib.nullcontext()
    torch.cuda.synchronize = lambda device=None: None  # a launch waits for its kernel


def pytest_configure():
    HIPDriver.is_active = staticmethod(lambda: True)  # it asks torch.cuda
    driver = Driver()
    triton.runtime.driver.set_active(driver)
    answer_for_torch(driver)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol():
    with OnHost(triton.runtime.driver.active.get_current_target().arch):
        return (yield)
