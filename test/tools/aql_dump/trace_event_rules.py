#!/usr/bin/env python3
"""Checks a file against the published rules of the Trace Event Format. Prints each broken rule.

  trace_event_rules.py TRACE.json [SOURCE.jsonl]

Written from the document "Trace Event Format" that chrome://tracing and ui.perfetto.dev refer to,
not from the programs that write such files. With SOURCE, the trace of the virtual GPU that the file
was made of, also checks that every packet and doorbell is there, once, at its time, on the thread of
its queue and the process of its GPU.

Exit code: 1 if a rule is broken, else 0.
"""

import bisect
import collections
import json
import sys
from decimal import Decimal

PHASES = set("BEXiICbneSTpFstfNODMPRcVv(),")
METADATA = {"process_name": "name", "thread_name": "name", "process_labels": "labels",
            "process_sort_index": "sort_index", "thread_sort_index": "sort_index"}


def nanoseconds(us):
    """Microseconds of the file, exactly, in nanoseconds."""
    return Decimal(str(us)) * 1000


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class Checker:
    def __init__(self, document):
        self.broken = []
        self.slices = collections.defaultdict(list)  # (pid, tid): (begin, end)
        self.begun = collections.defaultdict(list)  # (pid, tid): names of open B events
        self.flows = collections.defaultdict(list)  # (cat, name, id): events
        self.asynchronous = collections.defaultdict(list)
        self.names = collections.Counter()
        self.used = set()
        if not isinstance(document, dict) or not isinstance(document.get("traceEvents"), list):
            self.complain("no object with an array traceEvents", type(document).__name__)
            return
        if document.get("displayTimeUnit", "ms") not in ("ms", "ns"):
            self.complain("displayTimeUnit is neither ms nor ns", document["displayTimeUnit"])
        events = document["traceEvents"]
        sound = [event for event in events if self.fields(event)]
        # Duration events of a thread must be in the order of their times; other events need not.
        for event in sorted((e for e in sound if e["ph"] != "M"), key=lambda e: nanoseconds(e["ts"])):
            self.look_at(event)
        for event in (e for e in sound if e["ph"] == "M"):
            self.metadata(event)
        self.whole()

    def complain(self, rule, about):
        self.broken.append(f"{rule}: {json.dumps(about) if not isinstance(about, str) else about}")

    def fields(self, event):
        if not isinstance(event, dict):
            return self.complain("an event is no object", event)
        if event.get("ph") not in PHASES:
            return self.complain("no known phase", event)
        for field in ("pid", "tid"):
            if not isinstance(event.get(field), int) or isinstance(event.get(field), bool):
                return self.complain(f"no integer {field}", event)
        if event["ph"] != "E" and not isinstance(event.get("name"), str):
            return self.complain("no name", event)
        if event["ph"] != "M" and not (is_number(event.get("ts")) and event["ts"] >= 0):
            return self.complain("no time", event)
        if "args" in event and not isinstance(event["args"], dict):
            return self.complain("args are no object", event)
        if "cat" in event and not isinstance(event["cat"], str):
            return self.complain("cat is no string", event)
        return True

    def look_at(self, event):
        phase, thread = event["ph"], (event["pid"], event["tid"])
        begin = nanoseconds(event["ts"])
        self.used.add(thread)
        if phase == "X":
            if not is_number(event.get("dur")) or event["dur"] < 0:
                return self.complain("a complete event without a duration", event)
            self.slices[thread].append((begin, begin + nanoseconds(event["dur"])))
        elif phase == "B":
            self.begun[thread].append((event["name"], begin))
        elif phase == "E":
            if not self.begun[thread]:
                return self.complain("an end without a begin", event)
            name, start = self.begun[thread].pop()
            if event.get("name", name) != name:
                self.complain("an end of another event than the innermost", event)
            self.slices[thread].append((start, begin))
        elif phase in "stf":
            if "id" not in event or "cat" not in event:
                return self.complain("a flow without id and category", event)
            self.flows[event["cat"], event["name"], str(event["id"])].append(event)
        elif phase in "bne":
            if "id" not in event or "cat" not in event:
                return self.complain("an asynchronous event without id and category", event)
            self.asynchronous[event["cat"], str(event["id"])].append(event)
        elif phase in "iI":
            if event.get("s", "t") not in ("g", "p", "t"):
                self.complain("an instant with an unknown scope", event)
        elif phase == "C":
            if not event.get("args") or not all(is_number(v) for v in event["args"].values()):
                self.complain("a counter without numbers", event)

    def metadata(self, event):
        argument = METADATA.get(event["name"])
        if argument is None:
            return self.complain("unknown metadata", event)
        value = event.get("args", {}).get(argument)
        if not (is_number(value) if argument == "sort_index" else isinstance(value, str) and value):
            return self.complain(f"metadata without {argument}", event)
        key = (event["name"], event["pid"]) + ((event["tid"],) if event["name"].startswith("thread") else ())
        self.names[key] += 1
        if self.names[key] > 1:
            self.complain("named twice", event)

    def whole(self):
        for thread, names in self.begun.items():
            for name, _ in names:
                self.complain("a begin without an end", name)
        for slices in self.slices.values():
            slices.sort(key=lambda slice: (slice[0], -slice[1]))
            ends = []
            for begin, end in slices:
                while ends and ends[-1] <= begin:
                    ends.pop()
                if ends and end > ends[-1]:
                    self.complain("slices of a thread overlap without nesting", f"{begin} to {end} ns")
                ends.append(end)
        for key, events in self.flows.items():
            phases = "".join(event["ph"] for event in sorted(events, key=self.flow_order))
            if phases[0] != "s" or phases[-1] != "f" or phases.count("s") != 1 or phases.count("f") != 1:
                self.complain("a flow is not one start, then steps, then one finish", f"{key}: {phases}")
            for event in events:
                self.bound(event)
        for key, events in self.asynchronous.items():
            phases = "".join(event["ph"] for event in events)
            if phases.count("b") != phases.count("e") or not phases.startswith("b"):
                self.complain("an asynchronous event is no pair", f"{key}: {phases}")
        threads = {}
        for pid, tid in sorted(self.used):
            if not self.names["process_name", pid]:
                self.complain("a process without a name", str(pid))
            if not self.names["thread_name", pid, tid]:
                self.complain("a thread without a name", str(tid))
            # Perfetto identifies a thread by its number alone.
            if threads.setdefault(tid, pid) != pid:
                self.complain("a thread of two processes", str(tid))

    @staticmethod
    def flow_order(event):
        return nanoseconds(event["ts"]), "stf".index(event["ph"])

    def bound(self, event):
        """Flows bind to the enclosing slice; a finish without "bp": "e" to the next one."""
        slices = self.slices[event["pid"], event["tid"]]
        at = nanoseconds(event["ts"])
        if event["ph"] == "f" and event.get("bp") != "e":
            if slices[bisect.bisect_left(slices, (at, Decimal("-Infinity"))):] == []:
                self.complain("a finish without a next slice", event)
        elif not any(begin <= at and (at < end or begin == end == at) for begin, end in slices):
            self.complain("a flow outside of every slice", event)


def compared(document, lines):
    """Differences between the file and the trace that it was made of."""
    broken = []
    source = [json.loads(line) for line in lines if line.strip()]
    events = document["traceEvents"]
    origin = min([line["ns"] if line["type"] == "doorbell" else line["start_ns"] for line in source], default=0)
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    processes = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}

    def place(event):
        queue = threads[event["pid"], event["tid"]].replace(",", "").split()[1]
        return int(processes[event["pid"]].split()[1]), int(queue)

    found = collections.Counter()
    for event in events:
        if event["ph"] == "X":
            found[place(event) + ("slice", int(nanoseconds(event["ts"])), int(nanoseconds(event["dur"])))] += 1
        elif event["ph"] == "i" and event["cat"] == "doorbell":
            found[place(event) + ("doorbell", int(nanoseconds(event["ts"])), 0)] += 1
    expected = collections.Counter()
    for line in source:
        where = (line.get("gpu", 0), line["queue"])
        if line["type"] == "doorbell":
            expected[where + ("doorbell", line["ns"] - origin, 0)] += 1
        else:
            expected[where + ("slice", line["start_ns"] - origin, line["end_ns"] - line["start_ns"])] += 1
    for what, number in (expected - found).items():
        broken.append(f"missing {number} times: {what}")
    for what, number in (found - expected).items():
        broken.append(f"not in the source, {number} times: {what}")
    # A packet with the barrier bit depends on the packet before it, if it has one.
    packets = collections.defaultdict(list)
    process = collections.Counter()  # an index that occurs again is another process's
    mixed = set()
    for line in source:
        if "index" in line:
            queue = line.get("gpu", 0), line["queue"]
            if any(other["index"] == line["index"] for other in packets[queue + (process[queue],)]):
                process[queue] += 1
                if line["index"] != 0:
                    mixed.add(queue)
            packets[queue + (process[queue],)].append(line)
    # Processes that ran at the same time cannot be told apart.
    ends = {}
    for (*queue, _), lines_of_queue in packets.items():
        queue = tuple(queue)
        if min(line["start_ns"] for line in lines_of_queue) < ends.get(queue, 0):
            mixed.add(queue)
        ends[queue] = max([ends.get(queue, 0)] + [line["end_ns"] for line in lines_of_queue])
    dependent = 0
    for (*queue, _), lines_of_queue in packets.items():
        if tuple(queue) in mixed:
            continue
        lines_of_queue.sort(key=lambda line: line["index"])
        dependent += sum(1 for line in lines_of_queue[1:] if line["barrier"])
    finishes = sum(1 for e in events if e["ph"] == "f" or (e["ph"] == "i" and e["cat"] == "dependency"))
    if finishes < dependent:
        broken.append(f"{finishes} dependencies, but {dependent} packets have a barrier bit and a predecessor")
    return broken


def check(document, lines=None):
    broken = Checker(document).broken
    if not broken and lines is not None:
        broken = compared(document, lines)
    return broken


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        document = json.load(file)
    lines = None
    if len(sys.argv) > 2:
        with open(sys.argv[2], encoding="utf-8") as file:
            lines = file.readlines()
    broken = check(document, lines)
    for text in broken:
        print(text)
    print(f"{len(document['traceEvents'])} events, {len(broken)} broken rules")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
