#!/usr/bin/env python3
"""Compares the code that runs outside of calls with the tables that list it.

  test/structure/outside_of_calls.py [ROOT]

Constructors and destructors of libraries, fork handlers, exit handlers and signal handlers: each
source that has one is in the table "Code outside of calls" of its folder's page, with the reason,
and each source in a table has one. Objects with destructors of static or thread storage are in the
tables too, but no text of the source shows them.
"""
import pathlib
import re
import sys

PAGES = {"engine": "DESIGN.md", "tools/vgpu": "DESIGN.md", "tools/lint": "DESIGN.md",
         "tools/support": "README.md", "tools/graphs": "README.md"}
CODE = re.compile(r"\b(?:gnu::|__attribute__\(\()(?:constructor|destructor)\b"
                  r"|\bpthread_atfork\(|\b(?:__cxa_|at_quick_|std::)?at_?exit\(&|\bon_exit\("
                  r"|(?<!hsa_)\b(?:std::|__)?sig(?:action|nal)\([^;]*, &|\bstd::signal\(")
# Destructors, and functions of the linker, that CODE does not find.
DESTRUCTORS = {"engine": {"c/call.cpp", "completion/completion_thread.cpp", "runtime/counters.cpp",
                          "runtime/signal_budget.cpp"}}
# Constants that are computed at the load.
CONSTANTS = {"tools/vgpu": {"cp/device_thread.cpp", "device/whole_access.hpp",
                             "gfx9/memory/lanes-inl.hpp"}}


def sources_with_code(folder):
    found = set()
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".cpp", ".hpp"):
            continue
        lines = path.read_text().split("\n")
        text = "\n".join(line.split("//")[0] for line in lines)
        if CODE.search(text):
            found.add(str(path.relative_to(folder)))
    return found


def sources_in_table(page):
    section = page.read_text().split("Code outside of calls", 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[2] for line in section.split("\n") if line.startswith("| ")]
    return {name for row in rows[1:] for name in re.findall(r"`([^`]+)`", row)}


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    differences = []
    for folder, page in PAGES.items():
        listed = sources_in_table(root / folder / page)
        present = (sources_with_code(root / folder) | DESTRUCTORS.get(folder, set())
                   | CONSTANTS.get(folder, set()))
        differences += [f"{folder}/{name}: not in the table of {folder}/{page}"
                        for name in sorted(present - listed)]
        differences += [f"{folder}/{page}: {name} has no such code"
                        for name in sorted(listed - present)]
    print("\n".join(differences) or "all code outside of calls is listed")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
