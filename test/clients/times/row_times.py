"""The time of a call, for the programs times.py of the clients."""

import json
import statistics
import time


def row(name, call):
    """Prints the median of the call's seconds. The first calls compile, so they do not count."""
    for _ in range(3):
        call()
    seconds = []
    while len(seconds) < 3 or sum(seconds) < 0.5:
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    print(json.dumps({"row": name, "seconds": statistics.median(seconds)}), flush=True)
