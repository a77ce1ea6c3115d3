#!/usr/bin/env python3
"""Runs a program of the manual in a folder of its own and compares its output with what a page prints.

  run_example.py [--status N] [--output FILE] -- COMMAND...

FILE is the text on the page. It may break lines anywhere, name source files without their folders,
and leave out text as "...". Addresses and the number of the process count as equal. The output must
contain it. COMMAND must end with status N, by default 0.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile


def comparable(text):
    text = re.sub(r"0x[0-9a-f]+", "0x", text)
    text = re.sub(r"\(process \d+\)", "(process)", text)
    text = re.sub(r"[\w./-]*/([\w-]+\.(?:cpp|cl)):", r"\1:", text)
    return " ".join(text.split())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--status", type=int, default=0)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ended = subprocess.run(asked.command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    print(ended.stdout, end="")
    if ended.returncode != asked.status:
        return f"it ended with status {ended.returncode}, not {asked.status}"
    if asked.output:
        parts = [re.escape(part.strip()) for part in comparable(asked.output.read_text()).split("...")]
        if not re.search(".*?".join(parts), comparable(ended.stdout)):
            return f"its output does not contain {asked.output}"
    return None


sys.exit(main())
