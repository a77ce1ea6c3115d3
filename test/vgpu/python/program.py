#!/usr/bin/env python3
"""A HIP program in Python with mistakes, for findings_test.py.

  program.py CODE_OBJECT fences|memory|races|waits

Prints a line of JSON for each call of HIP that a finding may name: what the call is for, and the
Python calls at that moment, innermost first, by sys._getframe().
"""
import ctypes
import functools
import gc
import json
import pathlib
import sys
import threading

ITEMS = 128


def load_hip():
    for name in ("libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"):
        try:
            return ctypes.CDLL(name)
        except OSError as problem:
            error = problem
    raise error


HIP = load_hip()


def note(what):
    frame, calls = sys._getframe(1), []
    while frame is not None:
        file = pathlib.PurePath(frame.f_code.co_filename).name
        calls.append((frame.f_code.co_qualname, f"{file}:{frame.f_lineno}"))
        frame = frame.f_back
    print(json.dumps({"what": what, "calls": calls}), flush=True)


def check(status):
    assert status == 0, status


class Device:
    def __init__(self, code_object):
        self.module, self.functions = ctypes.c_void_p(), {}
        check(HIP.hipModuleLoad(ctypes.byref(self.module), code_object.encode()))
        self.streams = [self.stream(), self.stream()]

    @staticmethod
    def stream():
        stream = ctypes.c_void_p()
        check(HIP.hipStreamCreate(ctypes.byref(stream)))
        return stream

    def function(self, name):
        if name not in self.functions:
            function = ctypes.c_void_p()
            check(HIP.hipModuleGetFunction(ctypes.byref(function), self.module, name.encode()))
            self.functions[name] = function
        return self.functions[name]

    def allocate(self, what, host=False):
        pointer, size = ctypes.c_void_p(), ctypes.c_size_t(4 * ITEMS)
        if host:
            note(what), check(HIP.hipHostMalloc(ctypes.byref(pointer), size, 0))
        else:
            note(what), check(HIP.hipMalloc(ctypes.byref(pointer), size))
        return pointer

    def launch(self, name, stream, *pointers, items=ITEMS):
        parameters = (ctypes.c_void_p * len(pointers))(
            *(ctypes.cast(ctypes.pointer(pointer), ctypes.c_void_p) for pointer in pointers))
        function, stream = self.function(name), self.streams[stream]
        note(name), check(HIP.hipModuleLaunchKernel(function, 1, 1, 1, items, 1, 1, 0, stream, parameters, None))

    def synchronize(self):
        check(HIP.hipDeviceSynchronize())


# --- kinds of Python code that call a function ---


def in_nested_function(go):
    def inner():
        return go()
    return inner()


def in_lambda(go):
    return (lambda: go())()


def in_generator(go):
    def generate():
        yield from (go() for _ in range(1))
    return list(generate())


class Model:
    def __init__(self, go):
        go()

    def method(self, go):
        return go()


def in_constructor(go):
    Model(go)


def in_method(go):
    Model(lambda: None).method(go)


def decorator(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)
    return wrapper


@decorator
def in_decorated_function(go):
    return go()


def in_multi_line_call(go):
    return max(
        1,
        go(
        ) or 0,
        2,
    )


def in_comprehension(go):
    return {key: go() for key in [1]}


def in_thread(go):
    thread = threading.Thread(target=lambda: go())
    thread.start()
    thread.join()


def in_recursion(go, depth=20):
    return go() if depth == 0 else in_recursion(go, depth - 1)


def made_code(number):
    """A function of code that is freed with it, before the next is made."""
    def call(go):
        names = {}
        exec(compile("\n" * number + "def made(go):\n" + "\n" * number + "  return go()\n", "made.py", "exec"), names)
        names["made"](go)
        names.clear()
        gc.collect()
    return call


KINDS = [in_nested_function, in_lambda, in_generator, in_constructor, in_method, in_decorated_function,
         in_multi_line_call, in_comprehension, in_thread, in_recursion, made_code(0), made_code(1), made_code(2)]


# --- mistakes ---


def unordered(device):
    data, total = device.allocate("data"), device.allocate("sum")
    released = device.allocate("released", host=True)
    flag = ctypes.c_int.from_address(released.value)
    for kind in KINDS:
        flag.value = 0
        kind(lambda: device.launch("produce", 0, released, data))
        kind(lambda: device.launch("consume", 1, data, total))
        check(HIP.hipStreamSynchronize(device.streams[1]))
        flag.value = 1
        device.synchronize()


def wrong_memory(device):
    data, total = device.allocate("data"), device.allocate("sum")
    device.launch("consume", 0, data, total, items=2 * ITEMS)  # beyond the end
    device.synchronize()
    # By the global name, as in C: HIP returns memory to ROCr when its threads have let go of it.
    note("free"), check(ctypes.CDLL(None).hipFree(data))
    device.launch("consume", 0, data, total)
    device.synchronize()
    del total  # a leak


def racing(device):
    device.launch("race", 0, device.allocate("data"))
    device.synchronize()


def look(address):
    note("look"), ctypes.string_at(address, 4)


def unfinished(device):
    """The host reads what a kernel has stored, and has not waited for it as HSA has it."""
    data, total = device.allocate("data", host=True), device.allocate("sum", host=True)
    released = device.allocate("released", host=True)
    ctypes.memset(total, 0, 4)
    ctypes.c_int.from_address(released.value).value = 1
    device.launch("produce", 0, released, data)
    device.launch("consume", 0, data, total)
    while ctypes.c_int.from_address(total.value).value == 0:
        pass
    look(data.value)
    device.synchronize()


MISTAKES = {"fences": unordered, "memory": wrong_memory, "races": racing, "waits": unfinished}
if __name__ == "__main__":
    MISTAKES[sys.argv[2]](Device(sys.argv[1]))
