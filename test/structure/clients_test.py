#!/usr/bin/env python3
"""Tests what test/clients/run would run. It runs no client.

Takes the source tree as its first argument."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TREE = pathlib.Path(sys.argv.pop(1))
CLIENTS = TREE / "test" / "clients"
sys.dont_write_bytecode = True
sys.path.insert(0, str(CLIENTS / "suites"))
import suites

NAMES = sorted(folder.name for folder in CLIENTS.iterdir() if (folder / "requirements.txt").exists())


def run(*arguments):
    return subprocess.run([sys.executable, CLIENTS / "run", *arguments], capture_output=True, text=True)


def listed(*arguments):
    """(target, client/program, options) of each run."""
    lines = run("--list", *arguments).stdout.splitlines()
    return [tuple(line.split(" ", 2)) if line.count(" ") > 1 else (*line.split(" "), "") for line in lines]


class Clients(unittest.TestCase):
    def test_every_folder_is_a_client(self):
        self.assertEqual(sorted({program.split("/")[0] for _, program, _ in listed()}), NAMES)

    def test_versions_are_pinned(self):
        for name in NAMES:
            for line in (CLIENTS / name / "requirements.txt").read_text().splitlines():
                self.assertRegex(line, r"^[\w-]+==[\w.]+( *;.*)?$", name)

    def test_a_program_runs_plainly_and_under_each_check(self):
        modes = {options for _, program, options in listed("triton") if program == "triton/add.py"}
        checks = {"--check fences,waits", "--check memory", "--check races"}
        self.assertEqual({mode for mode in modes if not mode.startswith("--incoherent")}, {"", *checks})
        self.assertIn("--incoherent 1", modes)

    def test_modules_of_programs_are_no_programs(self):
        programs = {program for _, program, _ in listed()}
        self.assertEqual({"triton/device.py", "iree/both.py"} & programs, set())

    def test_each_client_has_a_mistake_that_runs_with_its_check_alone(self):
        for name in NAMES:
            marked = {
                f"{name}/{file.stem}": check
                for file in (CLIENTS / name).iterdir()
                if file.is_file()
                for check in re.findall(r"finds: (\S+) \S+$", file.read_text(), re.M)
            }
            self.assertNotEqual(marked, {}, name)
            for program, check in marked.items():
                options = [options for _, other, options in listed(name) if other.rsplit(".", 1)[0] == program]
                self.assertEqual(set(options), {f"--check {check}"}, program)

    def test_quick_runs_a_program_and_the_mistakes_of_each_client(self):
        for name in NAMES:
            plain = {program for _, program, options in listed("--quick", name) if options == ""}
            self.assertEqual(len(plain), 1, name)

    def test_a_client_without_times_is_refused(self):
        done = run("--times", "mojo")
        self.assertEqual(done.returncode, 2)
        self.assertIn("mojo has no times.py; there are those of triton, iree, tinygrad.", done.stderr)

    def test_programs_that_take_times_are_not_compared(self):
        self.assertEqual([program for _, program, _ in listed() if "times" in program], [])

    def test_one_target_alone(self):
        self.assertEqual({target for target, _, _ in listed("--target", "gfx942")}, {"gfx942"})


class Suites(unittest.TestCase):
    """Refusals of --suites. /bin/true stands for a launcher that exists."""

    def refused(self, *arguments, **variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("UPTEMPO_")}
        command = [sys.executable, CLIENTS / "run", "--launcher", "/bin/true", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env={**environment, **variables})
        self.assertEqual(done.returncode, 2)
        return done.stderr

    def test_no_checkout(self):
        self.assertIn("set one of UPTEMPO_TRITON, UPTEMPO_IREE, UPTEMPO_QUADRANTS, ", self.refused("--suites"))

    def test_a_client_whose_variable_is_not_set(self):
        error = self.refused("--suites", "triton")
        self.assertIn("UPTEMPO_TRITON must name a checkout of triton-lang/triton; it is not set.", error)

    def test_a_folder_that_is_no_checkout(self):
        error = self.refused("--suites", UPTEMPO_TRITON=str(TREE))
        self.assertIn("which has no folder 'python/test'.", error)

    def test_a_client_without_a_suite(self):
        error = self.refused("--suites", "mojo", UPTEMPO_TRITON=str(TREE))
        self.assertIn("mojo has no suite; there are those of triton, iree, quadrants, tinygrad.", error)

    def test_a_share_that_is_none(self):
        self.assertIn("--every 0: use 1 or more.", self.refused("--suites", "--every", "0", UPTEMPO_IREE=str(TREE)))
        self.assertIn("--every selects tests of --suites.", self.refused("--every", "2"))

    def test_another_mode_beside_it(self):
        self.assertIn("--suites does not combine with --quick.", self.refused("--suites", "--quick"))
        self.assertIn("--times does not combine with --suites.", self.refused("--suites", "--times"))

    def test_an_unknown_target(self):
        self.assertIn("invalid choice: 'gfx9o'", self.refused("--suites", "--target", "gfx9o"))


class Share(unittest.TestCase):
    """The tests that --every takes."""

    TESTS = [f"unit/test_one.py::test_many[{one}/2]" for one in range(100)]
    TESTS += [f"unit/test_two.py::test_{one}" for one in range(10)]

    def share(self, *arguments):
        return [self.TESTS[place] for place in sorted(suites.share(self.TESTS, *arguments))]

    def test_all(self):
        self.assertEqual(self.share(1, ()), self.TESTS)

    def test_it_has_the_size_asked_for_and_as_many_functions_as_possible(self):
        taken = self.share(10, ())
        self.assertEqual(len(taken), 11)
        self.assertEqual(len({test.partition("[")[0] for test in taken}), 11)

    def test_it_is_the_same_each_time(self):
        self.assertEqual(self.share(4, ()), self.share(4, ()))

    def test_tests_left_out_are_not_taken(self):
        self.assertEqual(self.share(1, ["test_one.py::test_many[[]*"]), self.TESTS[100:])


class Reports(unittest.TestCase):
    """Results, from pytest's report."""

    REPORT = """<testsuites><testsuite>
      <testcase classname="unit.language.test_core" name="test_add[1]"/>
      <testcase classname="unit.language.test_core" name="test_add[2]"><failure message="wrong">here</failure></testcase>
      <testcase classname="test.test_ops.TestOps" name="test_mul"><error message="broken"/></testcase>
      <testcase classname="test.test_ops.TestOps" name="test_div"><skipped message="slow"/></testcase>
    </testsuite></testsuites>"""

    def read(self, failing):
        result = suites.Result("gfx90a", 1.0)
        with tempfile.NamedTemporaryFile("w", suffix=".xml") as file:
            file.write(self.REPORT)
            file.flush()
            suites.read(file.name, suites.Suite("owner/name", (), failing=failing), result)
        return result

    def test_passed_skipped_and_failed_tests_are_counted(self):
        result = self.read({})
        self.assertEqual((result.passed, result.skipped), (1, 1))
        self.assertEqual([test for test, _ in result.failed], ["test_core.py::test_add[2]", "test_ops.py::TestOps::test_mul"])
        self.assertIn("wrong", result.failed[0][1])

    def test_a_known_cause_excuses_its_test_alone(self):
        result = self.read({"gfx90a test_core.py::test_add*": "no such instruction", "gfx942 *": "none"})
        self.assertEqual(result.known, [("test_core.py::test_add[2]", "no such instruction")])
        self.assertEqual([test for test, _ in result.failed], ["test_ops.py::TestOps::test_mul"])
        self.assertIn(", 1 failed: no such instruction", result.line("client 1.0"))


if __name__ == "__main__":
    unittest.main()
