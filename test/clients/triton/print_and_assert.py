"""tl.device_print and tl.device_assert: both ask the host for a service while the kernel runs.

A failed assertion ends the process, so that the program runs it in a child.
"""

import ctypes
import os
import subprocess
import sys
import tempfile

import triton
import triton.language as tl

from device import synchronize, zeros


@triton.jit
def report(x):
    tl.device_print("program", tl.program_id(0))


@triton.jit(debug=True)
def insist(x, limit):
    tl.device_assert(tl.program_id(0) < limit, "too many programs")


def printed():
    """What a launch of report() writes to stdout, which HIP writes to without Python's knowledge."""
    with tempfile.TemporaryFile() as text:
        stdout = os.dup(1)
        os.dup2(text.fileno(), 1)
        report[(3,)](zeros(1), num_warps=1)
        synchronize()
        ctypes.CDLL(None).fflush(None)  # HIP prints by the C library
        os.dup2(stdout, 1)
        text.seek(0)
        return text.read().decode()


if len(sys.argv) > 1:
    insist[(4,)](zeros(1), int(sys.argv[1]), num_warps=1)
    synchronize()
else:
    lines = printed().splitlines()
    for program in range(3):
        assert len([line for line in lines if line.endswith(f"program: {program}")]) == 64, (program, lines)
    child = [sys.executable, __file__]
    assert subprocess.run([*child, "4"]).returncode == 0
    failed = subprocess.run([*child, "3"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert failed.returncode != 0 and "too many programs" in failed.stdout, failed
