"""Kernels of several loops that Quadrants launches as HIP graphs (graph=True), against NumPy.

Each loop is a node of the graph. The loops of a kernel follow each other, so each reads what the
one before it has written.

usage: graphs.py [loops] [launches] [idle]
idle: wait after each launch
"""

import sys
import tempfile

import numpy as np
import quadrants as qd

LOOPS = int(sys.argv[1]) if len(sys.argv) > 1 else 48
LAUNCHES = int(sys.argv[2]) if len(sys.argv) > 2 else 5
IDLE = len(sys.argv) > 3
N = 256


def kernel_of(loops):
    """A kernel with that many loops. Quadrants reads kernels from source files."""
    lines = [
        "import quadrants as qd",
        "",
        "@qd.kernel(graph=True)",
        "def chain(x: qd.types.ndarray(qd.i32, ndim=1), y: qd.types.ndarray(qd.i32, ndim=1),",
        "          k: qd.i32):",
    ]
    for i in range(loops):
        to, other = ("x", "y") if i % 2 == 0 else ("y", "x")
        lines += [
            f"    for i in range({N}):",
            f"        {to}[i] = {to}[i] * 3 + {other}[(i + {i + 1}) % {N}] + k + {i}",
        ]
    file = tempfile.NamedTemporaryFile("w", suffix=".py", delete=False)
    file.write("\n".join(lines) + "\n")
    file.close()
    scope = {}
    exec(compile(open(file.name).read(), file.name, "exec"), scope)
    return scope["chain"]


def expected(x, y, k, loops):
    x, y = x.copy(), y.copy()
    for i in range(loops):
        to, other = (x, y) if i % 2 == 0 else (y, x)
        to[:] = to * np.int32(3) + np.roll(other, -(i + 1)) + np.int32(k + i)
    return x, y


def main():
    qd.init(arch=qd.amdgpu, offline_cache=False)
    kernel = kernel_of(LOOPS)
    start = np.arange(N, dtype=np.int32)
    x, y = qd.ndarray(qd.i32, shape=N), qd.ndarray(qd.i32, shape=N)
    x.from_numpy(start)
    y.from_numpy(start[::-1].copy())
    want = start, start[::-1].copy()
    for launch in range(LAUNCHES):
        kernel(x, y, launch)  # the argument differs, too
        if IDLE:
            qd.sync()
        want = expected(*want, launch, LOOPS)
    right = np.array_equal(x.to_numpy(), want[0]) and np.array_equal(y.to_numpy(), want[1])
    print(f"{LOOPS} loops, {LAUNCHES} launches: {'equal to NumPy' if right else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
