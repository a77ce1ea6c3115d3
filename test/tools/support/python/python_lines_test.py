#!/usr/bin/env python3
"""Compares the decoder of lines with CPython's own, for code of the standard library.

  python_lines_test.py PROBE

Every instruction of every code object, by co_positions() and co_lines(). Then tables of random
bytes, which no compiler makes: the decoder must end within them.
"""
import ctypes
import pathlib
import random
import sys
import types
import warnings

FOLDERS = (".", "asyncio", "collections", "concurrent/futures", "ctypes", "email", "html", "http", "importlib",
           "json", "logging", "multiprocessing", "sqlite3", "unittest", "urllib", "xml/dom", "xml/etree")
# Forms of entries that few programs have: lines that go back, expressions over many lines.
SOURCE = ("def f(a):\n" + "\n" * 3000 + "    return [\n" + "\n" * 300 + "        a(\n\n1,\n" + "\n" * 70 + "b),\n"
          "(c\n), d]\n")


def codes_in(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_in(constant)


def sources():
    root = pathlib.Path(types.__file__).parent
    for folder in FOLDERS:
        for path in sorted((root / folder).glob("*.py")):
            yield str(path), path.read_bytes()
    yield "made.py", SOURCE.encode()


class Probe:
    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.lines.restype = None
        self.library.lines.argtypes = [
            ctypes.c_char_p, ctypes.c_uint64, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint64, ctypes.c_void_p]

    def lines(self, table, first_line, first, count):
        to = (ctypes.c_int64 * count)()
        self.library.lines(table, len(table), first_line, first, count, to)
        return list(to)


def check(probe, code):
    """The number of instructions."""
    by_positions = [position[0] or 0 for position in code.co_positions()]
    count = len(code.co_code) // 2
    by_lines = [0] * count
    for begin, end, line in code.co_lines():
        by_lines[begin // 2:end // 2] = [line or 0] * ((end - begin) // 2)
    found = probe.lines(code.co_linetable, code.co_firstlineno, 0, count)
    assert found == by_positions[:count] == by_lines, (code, found, by_positions, by_lines)
    assert probe.lines(code.co_linetable, code.co_firstlineno, -1, 1) == [code.co_firstlineno]
    assert probe.lines(code.co_linetable, code.co_firstlineno, count, 2) == [0, 0]
    return count


def main():
    probe = Probe(sys.argv[1])
    warnings.simplefilter("ignore")  # of the library's sources
    codes = instructions = 0
    for path, source in sources():
        for code in codes_in(compile(source, path, "exec", dont_inherit=True)):
            instructions += check(probe, code)
            codes += 1
    assert codes > 5000, codes
    rng = random.Random(1)
    for _ in range(20000):
        probe.lines(rng.randbytes(rng.randrange(40)), rng.randrange(-5, 1000), rng.randrange(-3, 50), 30)
    print(f"Python {sys.version.split()[0]}: {codes} code objects, {instructions} instructions")


main()
