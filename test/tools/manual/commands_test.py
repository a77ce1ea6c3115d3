#!/usr/bin/env python3
"""Tests that each installed command has a man page.

  commands_test.py BUILD COMMAND...

The installed commands are those of the installation scripts in BUILD. COMMAND: those with a page.
"""

import pathlib
import re
import sys

build, documented = pathlib.Path(sys.argv[1]), set(sys.argv[2:])
# Started by lint_bench only.
helpers = {"lint_loop"}
installed = set()
scripts = [build / "cmake_install.cmake"]
for script in scripts:  # not those of folders that an earlier configuration had
    scripts += map(pathlib.Path, re.findall(r'include\("([^"]+cmake_install\.cmake)"\)', script.read_text()))
    for files in re.findall(r'TYPE EXECUTABLE FILES (.*?)\)', script.read_text(), re.S):
        installed |= {pathlib.PurePath(name).name for name in re.findall(r'"([^"]+)"', files)}
print("installed:", *sorted(installed))
missing = installed - documented - helpers
print("without a man page:", *sorted(missing))
sys.exit(1 if missing or not installed else 0)
