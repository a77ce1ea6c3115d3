#!/usr/bin/env python3
"""Compiles a kernel at run time and launches it, with nothing but ctypes and libuptempo.so.

  jit.py [LIBRARY]

LIBRARY is libuptempo.so; without it, the loader looks for libuptempo.so.0. Compiler: the clang of
UPTEMPO_CLANG, or ROCm's, or the newest in PATH. It needs no device libraries. Exit code: 0 equal to
the CPU's result, 1 not equal, the device failed, or something is missing.
"""
import ctypes
import glob
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = r"""
kernel void saxpy(global float* y, global const float* x, float a, uint n) {
  const uint i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  if (i < n) y[i] = a * x[i] + y[i];
}
"""
N = 1000
NO_LIMIT = 2**64 - 1
NOT_READY = -1  # uptempo_status
PINNED_MEMORY = 1  # uptempo_memory_kind


# Structs and prototypes of uptempo.h, as far as this program uses them.
class Grid(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("items", ctypes.c_uint32 * 3), ("workgroup", ctypes.c_uint32 * 3),
                ("dimensions", ctypes.c_uint32), ("lds_bytes", ctypes.c_uint32)]


class Arguments(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("count", ctypes.c_uint32), ("by_pointers", ctypes.c_uint32)]


class Completion(ctypes.Structure):
    _fields_ = [("timeline", ctypes.c_void_p), ("value", ctypes.c_uint64)]


class ErrorInfo(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("status", ctypes.c_int), ("hsa_status", ctypes.c_int32)] + [
        (name, ctypes.c_char_p) for name in ("function", "call", "asked", "found", "remedy", "message")]


class AgentInfo(ctypes.Structure):  # a prefix of uptempo_agent_info: `size` says so
    _fields_ = [("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("product_name", ctypes.c_char_p),
                ("isa", ctypes.c_char_p)]


class SaxpyArguments(ctypes.Structure):  # the kernel's parameters
    _fields_ = [("y", ctypes.c_void_p), ("x", ctypes.c_void_p), ("a", ctypes.c_float), ("n", ctypes.c_uint32)]


HANDLE, OUT = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
PROTOTYPES = {
    "uptempo_runtime_create": [HANDLE, OUT],
    "uptempo_runtime_destroy": [HANDLE],
    "uptempo_runtime_gpu": [HANDLE, ctypes.c_size_t, OUT],
    "uptempo_agent_get_info": [HANDLE, ctypes.POINTER(AgentInfo)],
    "uptempo_program_create": [HANDLE, ctypes.c_char_p, ctypes.c_size_t, HANDLE, OUT],
    "uptempo_program_destroy": [HANDLE],
    "uptempo_kernel_create": [HANDLE, ctypes.c_char_p, HANDLE, OUT],
    "uptempo_kernel_destroy": [HANDLE],
    "uptempo_queue_create": [HANDLE, HANDLE, OUT],
    "uptempo_queue_destroy": [HANDLE],
    "uptempo_batch_create": [HANDLE, HANDLE, OUT],
    "uptempo_batch_destroy": [HANDLE],
    "uptempo_batch_dispatch": [HANDLE, HANDLE, ctypes.POINTER(Grid), Arguments],
    "uptempo_batch_submit": [HANDLE, ctypes.c_uint64, ctypes.c_char_p, ctypes.POINTER(Completion)],
    "uptempo_completion_wait": [Completion, ctypes.c_uint64, ctypes.c_int],
    "uptempo_buffer_create": [HANDLE, ctypes.c_int, ctypes.c_size_t, HANDLE, OUT],
    "uptempo_buffer_destroy": [HANDLE],
}


class Uptempo:
    """The library. A call that fails, or finds nothing within its time limit, raises RuntimeError."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.uptempo_error.restype = ctypes.POINTER(ErrorInfo)
        self.library.uptempo_buffer_data.restype = ctypes.c_void_p
        self.library.uptempo_buffer_data.argtypes = [HANDLE]
        for name, types in PROTOTYPES.items():
            getattr(self.library, name).argtypes = types

    def __call__(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status == NOT_READY:  # no error: uptempo_error() has an older one
            raise RuntimeError(f"{name} found unfinished work, or no room, within its time limit")
        if status != 0:
            raise RuntimeError(self.library.uptempo_error().contents.message.decode())

    def make(self, name, *arguments):
        handle = ctypes.c_void_p()
        self(name, *arguments, ctypes.byref(handle))
        return handle


def compilers():
    yield os.environ.get("UPTEMPO_CLANG")
    for root in (os.environ.get("ROCM_PATH", "/opt/rocm"), "/opt/rocm"):
        yield from glob.glob(f"{root}/llvm/bin/clang") + glob.glob(f"{root}/lib/llvm/bin/clang")
    for version in range(22, 14, -1):
        yield shutil.which(f"clang-{version}")
    yield shutil.which("clang")


def compile_kernel(source, isa):
    """Returns a code object for an ISA such as amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-."""
    target = isa.split("--")[1].split(":")[0]
    clang = next((path for path in compilers() if path), None)
    if clang is None:
        raise RuntimeError("no clang was found: install clang and lld, or name one in UPTEMPO_CLANG")
    own_linker = os.path.dirname(os.path.realpath(clang))
    # Under uptempo-vgpu: the compiler is no program for the device.
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    with tempfile.TemporaryDirectory() as folder:
        kernel, code = os.path.join(folder, "kernel.cl"), os.path.join(folder, "kernel.co")
        pathlib.Path(kernel).write_text(source)
        command = [clang, "-x", "cl", "-cl-std=CL2.0", "-target", "amdgcn-amd-amdhsa", f"-mcpu={target}",
                   "-nogpulib", "-O2", f"-B{own_linker}", kernel, "-o", code]
        compiled = subprocess.run(command, env=environment, capture_output=True, text=True)
        if compiled.returncode != 0:
            raise RuntimeError(f"{clang} cannot compile for {target}: {compiled.stderr}")
        return pathlib.Path(code).read_bytes()


def run(library):
    uptempo = Uptempo(library)
    runtime = uptempo.make("uptempo_runtime_create", None)
    gpu = uptempo.make("uptempo_runtime_gpu", runtime, 0)
    info = AgentInfo(size=ctypes.sizeof(AgentInfo))
    uptempo("uptempo_agent_get_info", gpu, ctypes.byref(info))
    code = compile_kernel(SOURCE, info.isa.decode())
    program = uptempo.make("uptempo_program_create", gpu, code, len(code), None)
    saxpy = uptempo.make("uptempo_kernel_create", program, b"saxpy", None)
    queue = uptempo.make("uptempo_queue_create", gpu, None)
    batch = uptempo.make("uptempo_batch_create", queue, None)
    buffers = [uptempo.make("uptempo_buffer_create", gpu, PINNED_MEMORY, 4 * N, None) for _ in "xy"]
    addresses = [uptempo.library.uptempo_buffer_data(buffer) for buffer in buffers]
    x, y = ((ctypes.c_float * N).from_address(address) for address in addresses)
    for i in range(N):
        x[i], y[i] = i, 1

    arguments = SaxpyArguments(addresses[1], addresses[0], 2, N)
    packed = Arguments(ctypes.addressof(arguments), ctypes.sizeof(arguments), 0)
    grid = Grid(ctypes.sizeof(Grid), ((N + 63) // 64 * 64, 1, 1), (64, 1, 1), 1, 0)
    done = Completion()
    uptempo("uptempo_batch_dispatch", batch, saxpy, ctypes.byref(grid), packed)
    uptempo("uptempo_batch_submit", batch, NO_LIMIT, b"jit.py", ctypes.byref(done))
    uptempo("uptempo_completion_wait", done, NO_LIMIT, 0)
    # Exact in single precision: small integers.
    right = all(y[i] == 2 * i + 1 for i in range(N))
    print(f"{N} results of a kernel compiled for {info.name.decode()}, "
          f"{'equal to' if right else 'different from'} the CPU's")

    # No name is a reference to the memory any more.
    del x, y
    for buffer in buffers:
        uptempo("uptempo_buffer_destroy", buffer)
    for kind, handle in (("batch", batch), ("queue", queue), ("kernel", saxpy), ("program", program),
                         ("runtime", runtime)):
        uptempo(f"uptempo_{kind}_destroy", handle)
    return right


if __name__ == "__main__":
    try:
        sys.exit(0 if run(sys.argv[1] if len(sys.argv) > 1 else "libuptempo.so.0") else 1)
    except (OSError, RuntimeError) as error:
        sys.exit(f"jit.py: {error}")
