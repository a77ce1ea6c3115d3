#!/usr/bin/env python3
"""The checker of the Trace Event Format accepts a sound file and names the rule that each change breaks."""

import copy
import json
import unittest

import trace_event_rules


def sound():
    def named(what, name, tid=0):
        return {"ph": "M", "name": what, "pid": 1, "tid": tid, "args": {"name": name}}

    def at(phase, ts, tid, **more):
        return {"ph": phase, "name": more.pop("name", "k"), "cat": "c", "pid": 1, "tid": tid, "ts": ts, **more}

    return {"displayTimeUnit": "ns", "traceEvents": [
        named("process_name", "GPU 0 (virtual)"), named("thread_name", "queue 0", 1), named("thread_name", "queue 1", 2),
        at("X", 0, 1, dur=2.5), at("X", 1, 1, dur=1), at("X", 3, 1, dur=0.001),
        at("B", 5, 1), at("B", 6, 1, name="inner"), at("E", 7, 1, name="inner"), at("E", 8, 1),
        at("X", 4, 2, dur=1),
        at("s", 2.499, 1, id=1, name="depends"), at("f", 4, 2, id=1, name="depends", bp="e"),
        at("i", 9, 1, s="t"), at("C", 9, 1, args={"packets": 3}), at("b", 1, 2, id="0x1"), at("e", 2, 2, id="0x1")]}


SOURCE = [{"type": "doorbell", "queue": 0, "value": 1, "ns": 1000},
          {"type": "kernel_dispatch", "queue": 0, "index": 0, "barrier": True, "start_ns": 2000, "end_ns": 4500},
          {"type": "kernel_dispatch", "queue": 0, "index": 1, "barrier": True, "start_ns": 5000, "end_ns": 5001}]


def of_source():
    document = sound()
    names = document["traceEvents"][:2]
    slices = [{"ph": "X", "name": "k", "cat": "dispatch", "pid": 1, "tid": 1, "ts": ts, "dur": dur}
              for ts, dur in ((1.0, 2.5), (4.0, 0.001))]
    flow = {"name": "depends", "cat": "dependency", "pid": 1, "tid": 1, "id": 1}
    document["traceEvents"] = names + slices + [
        {"ph": "i", "name": "doorbell 1", "cat": "doorbell", "pid": 1, "tid": 1, "ts": 0, "s": "t"},
        {"ph": "s", "ts": 3.499, **flow}, {"ph": "f", "bp": "e", "ts": 4.0, **flow}]
    return document


class Rules(unittest.TestCase):
    def test_a_sound_file_breaks_no_rule(self):
        self.assertEqual(trace_event_rules.check(sound()), [])

    def test_each_defect_is_named(self):
        def events(phase, number=0):
            return lambda document: [e for e in document["traceEvents"] if e["ph"] == phase][number]

        def put(of, **fields):
            return lambda document: of(document).update(fields)

        def drop(of, field):
            return lambda document: of(document).pop(field)

        def remove(of):
            return lambda document: document["traceEvents"].remove(of(document))

        defects = [
            ("no known phase", put(events("X"), ph="Y")), ("no integer pid", drop(events("X"), "pid")),
            ("no integer tid", put(events("X"), tid="1")), ("no name", drop(events("X"), "name")),
            ("no time", drop(events("X"), "ts")), ("no time", put(events("X"), ts=-1)),
            ("no time", put(events("X"), ts="1")), ("without a duration", drop(events("X"), "dur")),
            ("without a duration", put(events("X"), dur=-1)), ("without nesting", put(events("X", 1), dur=2)),
            ("a begin without an end", remove(events("E"))), ("an end without a begin", remove(events("B"))),
            ("than the innermost", put(events("E"), name="k")),
            ("one start, then steps", remove(events("s"))), ("one start, then steps", put(events("f"), id=2)),
            ("one start, then steps", put(events("f"), ts=0.5, tid=1)), ("outside of every slice", put(events("s"), ts=2.5)),
            ("outside of every slice", put(events("f"), ts=5)),
            ("without id", drop(events("s"), "id")), ("unknown scope", put(events("i"), s="x")),
            ("without numbers", put(events("C"), args={"packets": "3"})), ("no pair", remove(events("e"))),
            ("unknown metadata", put(events("M"), name="title")), ("metadata without name", put(events("M"), args={})),
            ("a process without a name", remove(events("M"))), ("a thread without a name", remove(events("M", 2))),
            ("named twice", put(events("M", 2), tid=1)), ("neither ms nor ns", lambda document: document.update(displayTimeUnit="us"))]
        for rule, damage in defects:
            document = copy.deepcopy(sound())
            damage(document)
            self.assertTrue(any(rule in text for text in trace_event_rules.check(document)), rule)
        self.assertTrue(trace_event_rules.check([]))

    def test_the_source_must_agree(self):
        lines = [json.dumps(line) for line in SOURCE]
        self.assertEqual(trace_event_rules.check(of_source(), lines), [])
        for number, line in enumerate(SOURCE):
            for field, value in (("queue", 7), ("gpu", 1), ("ns" if "ns" in line else "end_ns", 999_999)):
                changed = copy.deepcopy(SOURCE)
                changed[number][field] = value
                self.assertTrue(trace_event_rules.check(of_source(), [json.dumps(each) for each in changed]))
        without_flow = of_source()
        without_flow["traceEvents"] = without_flow["traceEvents"][:-2]
        self.assertTrue(trace_event_rules.check(without_flow, lines))


if __name__ == "__main__":
    unittest.main()
