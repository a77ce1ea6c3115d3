#!/usr/bin/env python3
"""Tests what test/clients/run and test/libraries/run refuse, and what the latter would run. It runs
no program on a device.

Takes the source tree as its first argument."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TREE = pathlib.Path(sys.argv.pop(1))
LIBRARIES = TREE / "test" / "libraries"
RUNNERS = {"client": TREE / "test" / "clients" / "run", "library": LIBRARIES / "run"}
sys.dont_write_bytecode = True
sys.path.insert(0, str(LIBRARIES))
import records
import share


def run(runner, *arguments):
    return subprocess.run([sys.executable, "-B", runner, *arguments], capture_output=True, text=True)


class Runners(unittest.TestCase):
    def test_an_unknown_name_is_refused(self):
        for kind, runner in RUNNERS.items():
            done = run(runner, "cupy")
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"unknown {kind} 'cupy'; there are ", done.stderr)

    def test_a_missing_launcher_is_refused(self):
        for runner in RUNNERS.values():
            done = run(runner, "--launcher", TREE / "nothing")
            self.assertEqual(done.returncode, 2)
            self.assertIn("does not exist", done.stderr)


class Libraries(unittest.TestCase):
    def test_packages_of_the_libraries_named(self):
        done = run(RUNNERS["library"], "--packages", "rocprim", "rocblas")
        self.assertEqual(done.stdout.split(), ["librocprim-tests", "librocblas4-tests"])

    def test_each_program_is_run_on_each_target(self):
        listed = run(RUNNERS["library"], "--list", "--target", "gfx90a,gfx908", "rocprim").stdout.splitlines()
        self.assertIn("gfx90a test_hip_api", listed)
        self.assertIn("gfx908 test_hip_api", listed)
        self.assertEqual(len(listed), 2 * len(share.LIBRARIES["rocprim"].programs))

    def test_every_program_states_how_many_tests_it_has(self):
        for library in share.LIBRARIES.values():
            for program in library.programs:
                self.assertGreater(program.tests, 0, program.name)

    def test_a_file_of_records_is_cut_to_quick_tests_spread_over_it(self):
        def record(function, category, number):
            fields = b"".join(word.encode().ljust(records.FIELD, b"\0") for word in (function, "name", category))
            return bytes([number]) + fields

        head = b"rocFOO\0" + bytes(range(193)) + b"ROCfoo\0"
        tests = [record("gemm", "quick", number) for number in range(6)]
        others = [record("gemm", "nightly", 7), record("axpy", "quick", 8), record("dot", "quick", 9)]
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder) / "all", pathlib.Path(folder) / "cut"
            source.write_bytes(head + b"".join(others[:1] + tests + others[1:]))
            records.cut(share.Records(source, "rocFOO", 1, {"gemm": 2, "dot": 3}), target)
            self.assertEqual(target.read_bytes(), head + tests[0] + tests[3] + others[2])


if __name__ == "__main__":
    unittest.main()
