#!/usr/bin/env python3
"""Writes layouts.txt: where matrix instructions of gfx908, gfx90a and gfx942 hold A, B, C and D.

Usage: python3 layouts.py CHECKOUT > layouts.txt
CHECKOUT is a git checkout of https://github.com/ROCm/amd_matrix_instruction_calculator (its
matrix_calculator.py needs the Python package tabulate). This script passes that program its command
line arguments and reads the tables it prints. It contains none of its code and knows no layout: it
compresses the printed tables, expands the result again and stops when one entry differs.
"""
import contextlib
import functools
import importlib
import io
import re
import subprocess
import sys

TARGETS = ("gfx908", "gfx90a", "gfx942")
CELL = re.compile(r"(-?)v\[?(?:\d+:)?(\d+)\]?\{(\d+)\}(?:\.\[(\d+):(\d+)\])?$")
COORDINATES = {"A": ("block", "i", "k"), "B": ("block", "k", "j"),
               "C": ("block", "i", "j"), "D": ("block", "i", "j"), "K": ("block", "i", "k")}
WIDTHS = {"f64": 64, "f32": 32, "xf32": 32, "i32": 32, "f16": 16, "bf16": 16, "i8": 8,
          "fp8": 8, "bf8": 8}
# The calculator's names of types.
TYPES = {"FP64": "f64", "FP32": "f32", "INT32": "i32", "FP16": "f16", "BF16": "bf16", "INT8": "i8",
         "FP8": "fp8", "BF8": "bf8"}


@functools.lru_cache(maxsize=None)
def ask(*arguments):
    """The lines that the calculator prints for these command line arguments."""
    printed = io.StringIO()
    sys.argv = ["matrix_calculator.py", *arguments]
    with contextlib.redirect_stdout(printed):
        try:
            status = sys.modules["matrix_calculator"].parse_and_run()
        except SystemExit as end:
            status = end.code
    if status:
        sys.exit(f"{' '.join(sys.argv)}: {printed.getvalue()}")
    return printed.getvalue().splitlines()


def details(target, instruction):
    found = {}
    for line in ask("-a", target, "-i", instruction, "-d"):
        name, separator, value = line.strip().partition(": ")
        if separator:
            found[name] = value
    return found


def entries(target, instruction, matrix, width, *modifiers):
    """{(block, row, column): (register, lane, bit)} as the calculator's register layout says, and
    the text for negated entries."""
    found, blocks, signs = {}, [0], set()
    option = "-k" if matrix == "K" else f"-{matrix}"
    about = ("-a", target, "-i", instruction, "-R", option, "--csv", *modifiers)
    for line in ask(*about)[2:]:
        if line.startswith("Block"):
            blocks = [int(number) for number in re.findall(r"\d+", line)]
        elif line.startswith(f"{matrix}["):
            columns = [int(number) for number in line.split(",")[1:]]
        else:
            row, *cells = line.split(",")
            assert len(cells) == len(columns), line
            for column, cell in zip(columns, cells):
                match = CELL.match(cell)
                assert match, f"{instruction}: not understood: {cell}"
                sign, register, lane, high, low = match.groups()
                signs.add(sign)
                assert width >= 32 or int(high) - int(low) + 1 == width, cell
                for block in blocks:
                    key = (block, int(row), column)
                    assert key not in found, (instruction, key)
                    # A pair is printed as [high:low]; the table has the low register.
                    found[key] = (int(register), int(lane), int(low or 0))
    assert len(signs) == 1, f"{instruction}: one sign for all entries"
    return found, " neg=1" if "-" in signs else ""


def compress(names, table):
    """One place for entry [0][0] of block 0, and one step for every bit of every coordinate."""
    sizes = [1 + max(key[axis] for key in table) for axis in range(3)]
    assert len(table) == sizes[0] * sizes[1] * sizes[2]
    start, steps = table[0, 0, 0], []
    for axis, size in enumerate(sizes):
        assert size & (size - 1) == 0
        own = []
        for bit in range(size.bit_length() - 1):
            place = table[tuple(1 << bit if axis == at else 0 for at in range(3))]
            own.append((place[0] - start[0], (place[1] - start[1]) % 64, place[2] - start[2]))
        steps.append(own)
    for key, place in table.items():
        total = list(start)
        for axis in range(3):
            for bit, step in enumerate(steps[axis]):
                if key[axis] >> bit & 1:
                    total = [a + b for a, b in zip(total, step)]
        assert (total[0], total[1] % 64, total[2]) == place, (key, total, place)

    def text(place):
        parts = [f"{letter}{number}" for letter, number in zip("rlb", place) if number]
        return "+".join(parts) if parts else "0"

    line = f"start={text(start)}"
    for name, own in zip(names, steps):
        if own:
            line += f" {name}={','.join(text(step) for step in own)}"
    return line


def sparse_lines(target, instruction, types):
    """The matrices of a sparse instruction: pairs of A, 4 bits of K for a pair, B and D."""
    jobs = [("A", 2 * WIDTHS[types[0]], (), ""), ("B", WIDTHS[types[1]], (), ""),
            ("D", WIDTHS[types[2]], (), "")]
    for abid in range(2 if WIDTHS[types[0]] == 8 else 4):
        jobs.append(("K", 4, ("--cbsz", "0", "--abid", str(abid)), f" cbsz=0 abid={abid}"))
    jobs.append(("K", 4, ("--cbsz", "1"), " cbsz=1 abid=0"))
    return [matrix_line(target, instruction, *job) for job in jobs]


def matrix_line(target, instruction, matrix, width, modifiers, text):
    table, sign = entries(target, instruction, matrix, width, *modifiers)
    return f"{matrix} {instruction}{text}{sign} {compress(COORDINATES[matrix], table)}"


def describe(target, instruction):
    """The lines of one instruction, without the target."""
    about = details(target, instruction)
    blocks = int(about["blocks"])
    sparse = about["Sparse A matrix"] == "True"
    types = [TYPES[about[name].split()[0].upper()] for name in ("Src0", "Src1", "Vdst")]
    assert sparse or about["Src2"] == about["Vdst"], about
    # The calculator gives the type of the registers, not the precision of the products.
    if instruction.endswith("_xf32"):
        types[:2] = "xf32", "xf32"
    files = []
    for matrix in ("A matrix", "B matrix", "D matrix" if sparse else "C and D matrix"):
        files.append("".join(letter for letter, name in (("v", "ArchVGPRs"), ("a", "AccVGPRs"))
                             if about[f"{matrix} can use {name}"] == "True"))
    # The sparse instructions add to D, whose registers are then those of C.
    registers = ",".join(about[f"GPRs required for {'D' if sparse and matrix == 'C' else matrix}"]
                         for matrix in "ABCD")
    # The opcode number is omitted, because version 1.3.2 prints 0x54 for two instructions.
    lines = [f"instruction {instruction} m={about['M']} n={about['N']} k={about['K']}"
             f" blocks={blocks} in={types[0]},{types[1]} out={types[2]}"
             f" registers={registers} files={','.join(files)} sparse={int(sparse)}"]
    if sparse:
        return lines + sparse_lines(target, instruction, types)
    if about["CBSZ and ABID bits supported"] == "True":
        broadcasts = [(cbsz, abid)
                      for cbsz in range(blocks.bit_length()) for abid in range(1 << cbsz)]
    else:
        broadcasts = [(0, 0)]
    patterns = range(8) if about["BLGP bits supported"] == "True" else [0]
    jobs = [("A", WIDTHS[types[0]], ("--cbsz", str(cbsz), "--abid", str(abid)) if cbsz else (),
             f" cbsz={cbsz} abid={abid}") for cbsz, abid in broadcasts]
    jobs += [("B", WIDTHS[types[1]], ("--blgp", str(blgp)) if blgp else (), f" blgp={blgp}")
             for blgp in patterns]
    jobs += [(matrix, WIDTHS[types[2]], (), "") for matrix in "CD"]
    if types[0] == "f64" and len(patterns) > 1:  # BLGP negates A, B and C
        jobs = [(matrix, 64, ("--blgp", str(blgp)), f" blgp={blgp}")
                for matrix in "ABC" for blgp in patterns] + [("D", 64, (), "")]
    return lines + [matrix_line(target, instruction, *job) for job in jobs]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    checkout = sys.argv[1]
    git = subprocess.run(["git", "-C", checkout, "rev-parse", "HEAD"], capture_output=True,
                         text=True)
    commit = git.stdout.strip() or sys.exit(f"{checkout} is no git checkout: {git.stderr}")
    sys.path.insert(0, checkout)
    importlib.import_module("matrix_calculator")
    lists = {target: [line.strip() for line in ask("-a", target, "-L") if line.startswith(" ")]
             for target in TARGETS}
    results = {(target, instruction): describe(target, instruction)
               for target in TARGETS for instruction in lists[target]}
    version = ask("--version")[0].rpartition(" ")[2]
    print(f"""\
# Matrix instructions of gfx908, gfx90a and gfx942: the register, lane and bits of each entry of
# A, B, C, D.
# Facts printed by AMD's matrix instruction calculator, version {version},
# https://github.com/ROCm/amd_matrix_instruction_calculator
# commit {commit}.
# Made by: python3 layouts.py CHECKOUT > layouts.txt. Do not edit.
#
# The first word names the targets. An `instruction` line has sizes, types, the number of 32-bit
# registers of A, B, C, D, and the files that may hold A, B, and C with D (v: VGPRs, a: AccVGPRs).
# A line `A` to `D` has the place of every entry: that of A[i][k], B[k][j], C[i][j] or D[i][j] of a
# block is `start` plus, for every bit set in a coordinate, the step listed for that bit (bit 0
# first): r registers, l lanes (modulo 64), b bits. A coordinate without steps is always 0. A has a
# line for each CBSZ and ABID, B for each BLGP that AMD defines for the instruction.
# Where BLGP negates, A and C have a line for each BLGP too, and neg=1 marks negated entries.
#
# sparse=1: C is D. A[i][k] is one of the pair of entries at the place of its four k. K has the 4 bits
# that hold the numbers, 0 to 3, of the first and the second entry of that pair among the four.""")
    for instruction in dict.fromkeys(lists["gfx90a"] + lists["gfx908"] + lists["gfx942"]):
        holders = [target for target in TARGETS if (target, instruction) in results]
        every = list(dict.fromkeys(line for h in holders for line in results[h, instruction]))
        every.sort(key=lambda line: "iAKBCD".index(line[0]))
        for line in every:
            print(",".join(h for h in holders if line in results[h, instruction]), line)


if __name__ == "__main__":
    main()
