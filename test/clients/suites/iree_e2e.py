"""IREE's end-to-end tests as tests of pytest: sources that a CMakeLists.txt of tests/e2e has for the
driver "hip", with its flags, compiled for the virtual GPU and run by iree_check.py."""

import os
import pathlib
import re
import subprocess
import sys

import iree.compiler
import pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = pathlib.Path(os.environ["UPTEMPO_IREE"])


def words(block, key):
    """The quoted words after a key of a CMake call."""
    found = re.search(rf"^\s*{key}\n((?:\s*\".*\"\n)+)", block, re.M)
    return re.findall(r'"(.*)"', found[1]) if found else []


def sources():
    for file in sorted((ROOT / "tests" / "e2e").glob("**/CMakeLists.txt")):
        for block in re.findall(r"^ *iree_check_single_backend_test_suite\((.*?)^ *\)", file.read_text(), re.M | re.S):
            if words(block, "DRIVER") != ["hip"]:
                continue
            kind = [f"--iree-input-type={one}" for one in words(block, "INPUT_TYPE")]
            for name in words(block, "SRCS"):
                if (source := file.parent / name).exists():  # others are made by IREE's build
                    options = (*kind, *words(block, "COMPILER_FLAGS"))
                    flags = words(block, "RUNNER_ARGS")
                    yield pytest.param(source, options, flags, id=str(source.relative_to(ROOT / "tests" / "e2e")))


@pytest.mark.parametrize("source, options, flags", list(sources()))
def test_e2e(source, options, flags, tmp_path):
    module = tmp_path / "module.vmfb"
    target = ["--iree-hal-target-device=hip", f"--iree-rocm-target={os.environ['UPTEMPO_TARGET']}"]
    iree.compiler.compile_file(str(source), output_file=str(module), extra_args=[*target, *options])
    # In a process of its own: the flags are those of the process's first device.
    both = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    done = subprocess.run([sys.executable, HERE / "iree_check.py", module, *flags], **both)
    assert done.returncode == 0, done.stdout
