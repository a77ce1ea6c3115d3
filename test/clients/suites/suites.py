"""The clients' own test suites, which test/clients/run --suites takes from a checkout and runs on the
virtual GPU by pytest."""

import collections
import dataclasses
import fnmatch
import itertools
import math
import os
import pathlib
import random
import tempfile
import time
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
TEST_SECONDS = 600  # a test that takes longer hangs


@dataclasses.dataclass
class Suite:
    repository: str
    tests: tuple  # pytest's arguments
    folder: str = "."  # of the checkout, in which pytest starts
    plugins: tuple = ()  # modules beside this file
    modules: tuple = ()  # folders of the checkout from which the tests import modules
    environment: dict = dataclasses.field(default_factory=dict)
    needs_torch: bool = False
    # Tests that fail, by a pattern of the target and file::test: the cause, which is not the device's.
    failing: dict = dataclasses.field(default_factory=dict)
    # Tests that take more than TEST_SECONDS, by a pattern of file::test.
    left_out: dict = dataclasses.field(default_factory=dict)


SUITES = {
    "triton": Suite(
        "triton-lang/triton",
        ("unit/language",),
        folder="python/test",
        plugins=("triton_device",),
        needs_torch=True,
        failing={
            # The plugin copies the CPU's tensors, too, and the CPU's PyTorch pins no memory.
            "* test_core.py::test_pointer_arguments[[]cpu*": "needs a PyTorch for GPUs",
            # -0.0306 is what is left of terms up to 2,482, with the numbers of the CPU's generator.
            "gfx942 test_core.py::test_scaled_dot[[]32-64-128-True-False-False-e4m3-fp16-4-*": "rounding",
        },
        left_out={
            "test_core.py::test_load_store_same_ptr": "1,000 launches of 65,536 workgroups",
            "test_conversions.py::test_typeconvert_downcast[[]*": "4 billion values each",
        },
    ),
    "iree": Suite(
        "iree-org/iree",
        (str(HERE / "iree_e2e.py"),),
        failing={
            "* *[[]linalg_ext_ops/topk_v2.mlir]": "a race between waves of IREE's kernel, which --check races names",
            "* *[[]rocm_specific/wmma_matmul_f16.mlir]": "WMMA instructions, which gfx9 does not have",
        },
    ),
    "quadrants": Suite(
        "Genesis-Embodied-AI/quadrants",
        # Tests marked "slow" are those that its own runner leaves out. Those that need PyTorch need
        # one with HIP, or compare with it. Its conftest.py ends a worker after each failure.
        ("tests/python", "-m", "not slow and not needs_torch", "--max-worker-restart=9999"),
        modules=("tests",),
        environment={"QD_WANTED_ARCHS": "amdgpu"},
    ),
    "tinygrad": Suite(
        "tinygrad/tinygrad",
        ("test/backend/test_ops.py", "test/backend/test_dtype.py", "test/backend/test_jit.py"),
        needs_torch=True,
        failing={
            "* test_ops.py::TestOps::test_clip": "PyTorch 2.14 has another gradient at the bounds of clip",
            "* test_ops.py::TestOps::test_pad_replicate_mode": "PyTorch 2.14 does not pad to an empty tensor",
            # codegen/opt/tc.py, get_amd: it knows no gfx90a, and looks for gfx942:sramecc+:xnack-
            "* test_ops.py::TestOps::test_gemm_fp16": "tinygrad takes RDNA 3's matrix instructions",
        },
    ),
}


def variable(name):
    """The environment variable that names the client's checkout."""
    return f"UPTEMPO_{name.upper()}"


def checkout(name):
    """The client's checkout, or None."""
    folder = os.environ.get(variable(name))
    return pathlib.Path(folder).resolve() if folder else None


def requirements(name):
    """Files with what the suite needs beside the client."""
    return [file for file in (HERE / "pytest-requirements.txt", HERE / f"{name}-requirements.txt") if file.exists()]


def share(tests, every, left_out):
    """The places of one of `every` tests, given by their identifiers in pytest: folder/file::test[parameters].
    None matches a pattern of `left_out`, which has no folders.

    They are of as many test functions as possible, in an order that is random with a fixed seed, and then of
    as many sets of their parameters: some functions have ten thousand sets, and most have few."""
    functions = {}
    for place, test in enumerate(tests):
        function, bracket, parameters = test.partition("[")
        short = function.rsplit("/", 1)[-1] + bracket + parameters
        if not any(fnmatch.fnmatchcase(short, pattern) for pattern in left_out):
            functions.setdefault(function, []).append(place)
    chance = random.Random("share")
    order = list(functions.values())
    for places in (order, *order):
        chance.shuffle(places)
    rounds = (place for one in itertools.zip_longest(*order) for place in one if place is not None)
    return set(itertools.islice(rounds, math.ceil(sum(map(len, order)) / every)))


@dataclasses.dataclass
class Result:
    target: str
    seconds: float
    passed: int = 0
    skipped: int = 0
    known: list = dataclasses.field(default_factory=list)  # (test, cause)
    failed: list = dataclasses.field(default_factory=list)  # (test, message)
    broken: str = ""  # why there is no result

    def line(self, title):
        text = f"{title} as {self.target}: {self.passed} tests passed, {self.skipped} skipped by themselves"
        causes = collections.Counter(cause for _, cause in self.known)
        text += "".join(f", {count} failed: {cause}" for cause, count in causes.items())
        return f"{text}, {len(self.failed)} failed without a known cause, {self.seconds:.0f} s"


def name_of(case):
    """A test's name in a report: file::test[parameters], without folders."""
    # A module that cannot be imported has no class name.
    parts = (case.get("classname") or case.get("name")).split(".")
    modules = [place for place, part in enumerate(parts) if part.startswith("test_")]
    module = modules[-1] if modules else len(parts) - 1
    own = [case.get("name")] if case.get("classname") else []
    return "::".join([f"{parts[module]}.py", *parts[module + 1 :], *own])


def read(report, suite, result):
    """Adds to the result what pytest's report holds."""
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        if case.get("name") is None:  # interrupted
            continue
        fault = next((one for one in case if one.tag in ("failure", "error")), None)
        test = name_of(case)
        if fault is not None:
            named = f"{result.target} {test}"
            cause = next((suite.failing[one] for one in suite.failing if fnmatch.fnmatchcase(named, one)), None)
            text = f"{fault.get('message') or ''}\n{fault.text or ''}"
            if cause:
                result.known.append((test, cause))
            else:
                result.failed.append((test, text))
        elif case.find("skipped") is not None:
            result.skipped += 1
        else:
            result.passed += 1


def run(name, target, launcher, environment, jobs, every, output):
    """Runs the client's suite on the target. `environment`: of the client's programs, as `output` takes
    it, which runs a command."""
    suite, folder = SUITES[name], checkout(name)
    environment = {**environment, **suite.environment, "UPTEMPO_EVERY": str(every), "UPTEMPO_TARGET": target}
    environment[variable(name)] = str(folder)
    environment["UPTEMPO_LEFT_OUT"] = "\n".join(suite.left_out)
    environment["PYTHONPATH"] = ":".join(str(one) for one in (HERE, *(folder / one for one in suite.modules)))
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as reports:
        report = pathlib.Path(reports) / "report.xml"
        command = [launcher, "--device", target, "--", "python", "-m", "pytest", "-q", "--tb=short"]
        # A thread ends a worker whose kernel hangs; a signal's handler would wait for the call of HIP.
        command += ["-n", str(jobs), f"--timeout={TEST_SECONDS}", "--timeout-method=thread", f"--junitxml={report}"]
        for plugin in ("every", *suite.plugins):
            command += ["-p", plugin]
        command += suite.tests
        status, text = output(command, cwd=folder / suite.folder, env=environment)
        result = Result(target, time.monotonic() - started)
        if report.exists():
            read(report, suite, result)
        # 0 and 1: all tests ran. Another status: some did not, or none were collected.
        if status not in (0, 1) or not result.passed:
            result.broken = f"status {status}:\n{text}"
    return result
