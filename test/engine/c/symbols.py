#!/usr/bin/env python3
"""Compares the functions of the C interface: those that the headers declare, those of the symbol list,
and those that the shared library exports. Prints each difference.

  symbols.py ENGINE_FOLDER LIBRARY
"""

import pathlib
import re
import subprocess
import sys


def main():
    engine, library = pathlib.Path(sys.argv[1]), sys.argv[2]
    declared = set()
    for header in (engine / "c").glob("*.h"):
        declared |= set(re.findall(r"UPTEMPO_API\s[^;(]*?\b(uptempo_\w+)\(", header.read_text()))
    listed = set(re.findall(r"^    (\w+);$", (engine / "c/uptempo.map").read_text(), re.M))
    output = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    # The version itself is an absolute symbol (A).
    exported = {name for kind, name in re.findall(r"^\S+ (\S) (\S+)$", output, re.M) if kind != "A"}
    found = [f"{name}: declared, but not in uptempo.map" for name in sorted(declared - listed)]
    found += [f"{name}: in uptempo.map, but not declared" for name in sorted(listed - declared)]
    found += [f"{name}@@UPTEMPO_0: not exported" for name in sorted(listed) if f"{name}@@UPTEMPO_0" not in exported]
    found += [f"{name}: exported, but not listed" for name in sorted(exported - {f"{name}@@UPTEMPO_0" for name in listed})]
    print("\n".join(found) or f"{len(listed)} functions")
    return bool(found) or not listed


sys.exit(main())
