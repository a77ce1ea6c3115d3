"""Cuts the files from which rocblas-test and rocsparse-test make their tests: all of rocBLAS' 1.6
million would have to be read for each group of tests, from 0.9 GB.

Such a file starts with a head: the library's name, one record of a known pattern, and the name with
its cases swapped. Records of the same size follow. Three fields of 64 bytes in each are the
function, the test's name and the category."""

import mmap

FIELD = 64


def text(record, offset):
    return record[offset : offset + FIELD].split(b"\0")[0].decode()


def evenly(found, count):
    """At most `count` of what was found, spread over it."""
    count = min(count, len(found))
    return [found[index * len(found) // count] for index in range(count)]


def cut(records, target):
    """Writes the head, and some quick tests of each function in records.functions: as many as it
    says."""
    with open(records.file, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        mark = records.name.encode() + b"\0"
        size = data.find(mark.swapcase()) - len(mark)
        head = size + 2 * len(mark)
        of_function = {function: [] for function in records.functions}
        for start in range(head, len(data), size):
            fields = data[start + records.function_at : start + records.function_at + 3 * FIELD]
            if (function := text(fields, 0)) in of_function and text(fields, 2 * FIELD) == "quick":
                of_function[function].append(start)
        with open(target, "wb") as out:
            out.write(data[:head])
            for function, count in records.functions.items():
                for start in evenly(of_function[function], count):
                    out.write(data[start : start + size])
