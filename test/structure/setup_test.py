#!/usr/bin/env python3
"""Tests which packages tools/setup.sh installs, with commands of the package system that only note what they are asked for.

Takes the source tree as its first argument."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TREE = pathlib.Path(sys.argv.pop(1))

# Nothing is installed, and every package is available.
COMMANDS = {"dpkg-query": "exit 1", "apt-cache": "exit 0", "id": "echo 0", "apt-get": 'echo "$@" >>"$ASKED"'}
# Packages of Debian 12 that depend on its ROCr (`apt-cache rdepends --recurse libhsa-runtime64-1`), and the thunk's.
ROCM = {"libhsa-runtime-dev", "libhsakmt-dev", "hipcc", "libamdhip64-dev", "rocminfo", "librocrand1", "librocsparse0"}


def installed(rocm_files):
    """The packages that apt-get is asked to install, where ROCM_PATH has these files."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "bin").mkdir()
        for name, body in COMMANDS.items():
            (root / "bin" / name).write_text(f"#!/bin/sh\n{body}\n")
            (root / "bin" / name).chmod(0o755)
        for name in rocm_files:
            (root / "rocm" / name).parent.mkdir(parents=True, exist_ok=True)
            (root / "rocm" / name).touch()
        # The script makes a folder build/ beside tools/.
        (root / "tools").mkdir()
        (root / "tools" / "setup.sh").write_text((TREE / "tools" / "setup.sh").read_text())
        script = ('set -euo pipefail; command_name=check; . tools/setup.sh; '
                  'install_packages "${build_packages[@]}" "${check_packages[@]}" "${all_packages[@]}"')
        environment = {**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}", "ROCM_PATH": f"{root}/rocm",
                       "ASKED": f"{root}/asked"}
        subprocess.run(["bash", "-c", script], cwd=root, env=environment, check=True, stdout=subprocess.DEVNULL)
        lines = (root / "asked").read_text().splitlines()
        return {word for line in lines if " install " in f" {line} " for word in line.split()}


class Setup(unittest.TestCase):
    def test_without_rocm_the_distribution_s_is_installed(self):
        self.assertEqual(ROCM - installed([]), set())

    def test_no_second_rocr_is_installed_beside_rocm_s(self):
        packages = installed(["lib/libhsa-runtime64.so.1"])
        self.assertEqual(ROCM & packages, set())
        self.assertIn("catch2", packages)

    def test_a_rocm_without_rocr_does_not_count(self):
        self.assertEqual(ROCM - installed(["lib/librocrand.so.1"]), set())


if __name__ == "__main__":
    unittest.main()
