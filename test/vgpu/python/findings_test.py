#!/usr/bin/env python3
"""Compares the calls that findings name of a Python program with those that the program printed.

  findings_test.py LAUNCHER PYTHON CODE_OBJECT [LINT]

PYTHON: the interpreter that runs the program. LINT: libuptempo-lint.so; its call sites are compared, too.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

LAUNCHER, PYTHON, CODE_OBJECT, *LINT = sys.argv[1:]
PROGRAM = pathlib.Path(__file__).with_name("program.py")
INTERPRETER = re.compile("_Py|Py[A-Z]|ffi_call|ctypes|cfunction")
MOST = 6  # calls that a finding names


def run(what, *options, environment=()):
    """The program's calls, a list of (what, calls), and its standard error."""
    program = [*environment, PYTHON, str(PROGRAM), CODE_OBJECT, what]
    done = subprocess.run([LAUNCHER, "--deterministic", *options, "--", *program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    # The outermost calls of a thread are the standard library's.
    own = [[tuple(call) for call in line["calls"] if not call[1].startswith("threading.py:")] for line in lines]
    return [(line["what"], calls[:MOST]) for line, calls in zip(lines, own)], done.stderr


def findings(what, check):
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report"
        notes, error = run(what, "--check", check, "--report", str(report))
        found = [json.loads(line) for line in report.read_text().splitlines()]
    for frames in frames_in(found):
        for frame in frames:
            assert not INTERPRETER.search(frame.get("function", "")), frames
    return notes, [one for one in found if "class" in one], error


def frames_in(value):
    """Every list of calls in a report."""
    if isinstance(value, dict):
        for key, inside in value.items():
            if key.endswith("_by") or key == "site":
                yield inside
            else:
                yield from frames_in(inside)
    elif isinstance(value, list):
        for inside in value:
            yield from frames_in(inside)


def calls_of(frames, entry):
    """The Python calls, after the function of HIP that they called."""
    # Some exported functions jump to one without a name.
    assert frames[0].get("function", entry) == entry and "libamdhip64" in frames[0]["module"], frames
    for frame in frames[1:]:
        assert set(frame) == {"function", "source"}, frame
    return [(frame["function"], frame["source"]) for frame in frames[1:]]


def expected(notes, what):
    return [calls for noted, calls in notes if noted == what]


def check_fences():
    notes, found, _ = findings("fences", "fences,repeated")
    pairs = set()
    for one in found:
        tasks = {task["kernel"]: task for task in (one["writer"], one["reader"]) if "kernel" in task}
        if set(tasks) != {"produce.kd", "consume.kd"}:
            continue  # HIP's own
        pairs.add(tuple(tuple(calls_of(tasks[name]["published_by"], "hipModuleLaunchKernel"))
                        for name in ("produce.kd", "consume.kd")))
        if one["reader"]["kernel"] == "consume.kd":
            memory = calls_of(one["memory"]["allocated_by"], "hipMalloc")
            assert memory == expected(notes, "data")[0], one
    both = zip(expected(notes, "produce"), expected(notes, "consume"))
    wanted = {tuple(map(tuple, pair)) for pair in both}
    assert len(wanted) == len(expected(notes, "produce")) >= 13
    assert pairs == wanted, (pairs - wanted, wanted - pairs)


def check_memory():
    notes, found, _ = findings("memory", "memory")
    by_class = {one["class"]: one for one in found}
    first, second = expected(notes, "consume")
    data, total, free = (expected(notes, what)[0] for what in ("data", "sum", "free"))
    beyond = by_class["out-of-bounds"]
    assert calls_of(beyond["published_by"], "hipModuleLaunchKernel") == first, beyond
    assert calls_of(beyond["memory"]["allocated_by"], "hipMalloc") in (data, total), beyond
    freed = by_class["use-after-free"]
    assert calls_of(freed["published_by"], "hipModuleLaunchKernel") == second, freed
    assert calls_of(freed["memory"]["allocated_by"], "hipMalloc") == data, freed
    # HIP 5.2 may keep the memory until the next launch. The calls then begin with hipFree's caller.
    freed_by = freed["memory"]["freed_by"]
    if "module" not in freed_by[0]:
        freed_by = [{"module": "libamdhip64"}, *freed_by]
    assert calls_of(freed_by, "hipFree") == free, freed
    if "function" in freed["memory"]["allocated_by"][0]:  # else leaks are not told from HIP's own memory
        leak = by_class["leak"]
        assert calls_of(leak["memory"]["allocated_by"], "hipMalloc") == total, leak


def check_races():
    notes, found, _ = findings("races", "races")
    race = next(one for one in found if one["class"] == "race")
    assert calls_of(race["published_by"], "hipModuleLaunchKernel") == expected(notes, "race")[0], race


def check_waits():
    notes, found, _ = findings("waits", "fences,waits")
    look = expected(notes, "look")[0][0]
    sites = [(task["site"][-1]["function"], task["site"][-1]["source"])
             for one in found for task in (one["writer"], one["reader"]) if "site" in task]
    assert look in sites, (look, sites)


def check_text():
    """As a reader sees it."""
    notes, error = run("fences", "--check", "fences")
    calls = expected(notes, "produce")[0]
    lines = "".join(f"        {function} at {source}\n" for function, source in calls)
    wanted = ("produce.* writes? at kernels.hip:[0-9]+, published by\n"
              "(        hipModuleLaunchKernel in libamdhip64[^\n]*\n)?" + re.escape(lines))
    assert re.search(wanted, error), (wanted, error)


def check_lint():
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report"
        options = f"UPTEMPO_LINT=format=json,sites=0,file={report}"
        notes, _ = run("fences", environment=["env", f"HSA_TOOLS_LIB={LINT[0]}", options])
        lines = [json.loads(line) for line in report.read_text().splitlines()]
    found = [line for line in lines if line["type"] == "finding" and line["packet"] == "produce"]
    places = {site["place"] for line in found for site in line["sites"]}
    wanted = {f"{function} at {source}" for function, source in (calls[0] for calls in expected(notes, "produce"))}
    assert places and places <= wanted, (places, wanted)


for each in (check_fences, check_memory, check_races, check_waits, check_text) + (check_lint,) * len(LINT):
    each()
    print(each.__name__)
