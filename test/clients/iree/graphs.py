"""A module of many dispatches, which IREE's HIP driver launches as one graph, against NumPy.

IREE makes a graph of a command buffer whose buffers it knows when it records it. So the caller
gives the memory of all results, and indirect buffers are off. Each dispatch adds a product to its
result, which the next one reads. Copies of arrays to the device are graphs of one node.

usage: graphs.py [dispatches] [invocations]
"""

import pathlib
import sys

import iree.compiler
import iree.runtime
import iree.runtime.flags
import numpy as np

DISPATCHES = int(sys.argv[1]) if len(sys.argv) > 1 else 100
INVOCATIONS = int(sys.argv[2]) if len(sys.argv) > 2 else 3
SIZE = 16


def target():
    """gfx90a or gfx942, as the driver tells: 90010 is 9.0.10, and a digit of the name is hexadecimal."""
    for properties in sorted(pathlib.Path("/sys/class/kfd/kfd/topology/nodes").glob("*/properties")):
        fields = dict(line.split() for line in properties.read_text().splitlines())
        version = int(fields["gfx_target_version"])
        if version:
            return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"
    raise RuntimeError("no GPU")


def source():
    t = f"tensor<{SIZE}x{SIZE}xi32>"
    results = range(1, DISPATCHES + 1)
    storage = ", ".join(f"%s{i}: {t} {{iree.abi.output = {i - 1} : index}}" for i in results)
    products = "\n".join(
        f"  %r{i} = linalg.matmul ins(%r{i - 1}, %w : {t}, {t}) outs(%s{i} : {t}) -> {t}" for i in results
    )
    types = ", ".join([t] * DISPATCHES)
    names = ", ".join(f"%r{i}" for i in results)
    return f"func.func @chain(%r0: {t}, %w: {t}, {storage}) -> ({types}) {{\n{products}\n  return {names} : {types}\n}}"


def main():
    options = [
        "--iree-hal-target-device=hip",
        f"--iree-rocm-target={target()}",
        "--iree-hal-indirect-command-buffers=false",
    ]
    binary = iree.compiler.compile_str(source(), extra_args=options)
    iree.runtime.flags.parse_flags("--hip_use_streams=false")
    config = iree.runtime.Config("hip")
    module = iree.runtime.load_vm_module(iree.runtime.VmModule.copy_buffer(config.vm_instance, binary), config)

    numbers = np.random.default_rng(1).integers(-9, 9, (2, SIZE, SIZE), np.int32)
    first, w = (iree.runtime.asdevicearray(config.device, each) for each in numbers)
    zeros = np.zeros((SIZE, SIZE), np.int32)
    storage = [iree.runtime.asdevicearray(config.device, zeros) for _ in range(DISPATCHES)]
    expected = [zeros] * DISPATCHES
    for _ in range(INVOCATIONS):
        results = module.chain(first, w, *storage)
        before = numbers[0]
        for i in range(DISPATCHES):
            expected[i] = before = expected[i] + before @ numbers[1]
    found = [np.asarray(result.to_host()) for result in (results if DISPATCHES > 1 else [results])]
    right = all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    print(f"{DISPATCHES} dispatches, {INVOCATIONS} invocations: {'equal to NumPy' if right else 'WRONG'}")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
