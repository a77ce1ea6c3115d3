"""Compiles a module for the GPU and for IREE's CPU backend, runs it on both, and compares the results."""

import pathlib

import iree.compiler
import iree.runtime
import numpy as np

CPU = [
    "--iree-hal-target-device=local",
    "--iree-hal-local-target-device-backends=llvm-cpu",
    "--iree-llvmcpu-target-cpu=host",
]


def target():
    """gfx90a or gfx942, as the driver tells: 90010 is 9.0.10, and a digit of the name is hexadecimal."""
    for node in sorted(pathlib.Path("/sys/class/kfd/kfd/topology/nodes").iterdir()):
        fields = dict(line.split() for line in (node / "properties").read_text().splitlines())
        version = int(fields["gfx_target_version"])
        if version:
            return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
    raise RuntimeError("no GPU")


def gpu():
    """The options that compile for the GPU."""
    return ["--iree-hal-target-device=hip", f"--iree-rocm-target={target()}"]


def function(binary, device, name="main"):
    """The module's function, which takes and returns NumPy arrays. `device` is "hip" or "local-task"."""
    config = iree.runtime.Config(device)
    module = iree.runtime.VmModule.copy_buffer(config.vm_instance, binary)
    return iree.runtime.load_vm_module(module, config)[name]


def results(call, inputs):
    found = call(*inputs)
    found = found if isinstance(found, (tuple, list)) else (found,)
    return [np.asarray(one) for one in found]


def compare(source, *inputs, tolerance=0.0, options=()):
    """Returns the GPU's results. `tolerance` is relative to the largest value of each result."""
    one_device, other_device = (
        results(function(iree.compiler.compile_str(source, extra_args=[*device, *options]), driver), inputs)
        for device, driver in ((gpu(), "hip"), (CPU, "local-task"))
    )
    for one, other in zip(one_device, other_device, strict=True):
        wide = one.astype(np.float64), other.astype(np.float64)
        np.testing.assert_allclose(*wide, rtol=0, atol=tolerance * np.abs(wide[1]).max())
    return one_device
