#!/usr/bin/env python3
"""Tests what test/clients/run would run. It runs no client.

Takes the source tree as its first argument."""

import pathlib
import re
import subprocess
import sys
import unittest

TREE = pathlib.Path(sys.argv.pop(1))
CLIENTS = TREE / "test" / "clients"
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


if __name__ == "__main__":
    unittest.main()
