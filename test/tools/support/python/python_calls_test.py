#!/usr/bin/env python3
"""Compares the calls that tools see of a Python program with those of sys._getframe().

  python_calls_test.py PROBE

Each case calls look() from another kind of Python code. look() compares.
"""
import asyncio
import atexit
import contextlib
import ctypes
import functools
import gc
import pathlib
import subprocess
import sys
import sysconfig
import threading
import types

LIBRARY = ctypes.CDLL(sys.argv[1])  # releases the interpreter's lock
LOCKED = ctypes.PyDLL(sys.argv[1])  # keeps it
LIBRARY.find()
SIZE = 100000
OWN = 6
looks = 0


def read(library):
    """What tools see, and what they should see."""
    buffer = ctypes.create_string_buffer(SIZE)
    length, wanted = library.calls(buffer, ctypes.c_uint64(SIZE)), expected(sys._getframe())  # on one line
    assert length >= 0
    calls = [tuple(line.split("\t")) for line in buffer.raw[:length].decode().split("\n")[:-1]]
    calls = [(function, file, int(line)) for function, file, line in calls]
    if calls:
        assert calls.pop() == calls[0]  # read() is the program's own
    return calls, wanted


def shown(path):
    """The name of a file, and whether a library has it, by the rules of python_calls.hpp."""
    for part in ("/site-packages/", "/dist-packages/", f"/lib/python3.{sys.version_info[1]}/"):
        if part in path:
            return path.split(part)[-1], True
    if path.startswith("<frozen "):
        return path, True
    pure = pathlib.PurePosixPath(path)
    return "/".join(pure.parts[-2:]) if pure.name in ("__init__.py", "__main__.py") else pure.name, False


def expected(frame):
    """What tools should see of the frames from this one on."""
    all_calls, calls, library = [], [], None
    own = 0
    while frame is not None and own < OWN:
        file, is_library = shown(frame.f_code.co_filename)
        call = (frame.f_code.co_qualname, file, frame.f_lineno or 0)
        frame = frame.f_back
        all_calls.append(call)
        if is_library:
            library = call
            continue
        own += 1
        calls += ([library] if library else []) + [call]
        library = None
    return calls if own else all_calls[:OWN]


def look(*_):
    global looks
    looks += 1
    for library in (LIBRARY, LOCKED):
        calls, wanted = read(library)
        assert calls == wanted, (calls, wanted)
    return calls


def nested():
    def inner():
        def innermost():
            return look()
        return innermost()
    return inner()


def counted(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)
    return wrapper


class Base:
    def method(self):
        return look()


class Model(Base):
    def __init__(self):
        self.looked = look()

    def method(self):
        return super().method()

    @classmethod
    def of_class(cls):
        return look()

    @staticmethod
    def static():
        return look()

    @property
    def value(self):
        return look()

    def __getitem__(self, index):
        return look()

    def __call__(self):
        return look()

    @counted
    def decorated(self):
        return look()

    def __del__(self):
        look()


@contextlib.contextmanager
def around():
    look()
    yield
    look()


@around()
def in_library_decorator():
    return look()


def generator():
    for _ in range(3):
        yield look()


def delegating():
    yield from generator()


def recursive(depth):
    return look() if depth == 0 else recursive(depth - 1)


def multi_line(first):
    return max(
        len(first),
        len(
            look(
                1,
            )
        ),
        0,
    )


def handler():
    try:
        raise KeyError
    except KeyError:
        return look()
    finally:
        look()


async def waits():
    await asyncio.sleep(0)
    async with asyncio.Lock():
        look()
    return [look() async for _ in asynchronous()]


async def asynchronous():
    for _ in range(2):
        await asyncio.sleep(0)
        yield look()


def closure_and_cells(a):
    return (lambda: (a, look()))()


def made_code():
    """Code whose object is freed before the next is made, at the same address with other lines."""
    seen = set()
    for round_number in range(50):
        name = f"made {round_number % 3} \u00e9\u4e2d\U0001f600.py"
        source = "\n" * (round_number % 7) + "def made(look):\n" + "\n" * round_number + "  return look()\n"
        names = {}
        exec(compile(source, name, "exec"), names)
        calls = names["made"](look)
        seen.add(calls[2])
        assert calls[2][:2] == ("made", name), calls
        names.clear()
        del names
        gc.collect()
    assert len(seen) == 50, seen
    # A long path loses its begin, a long function its end.
    path, function = "/".join(["folder" * 10] * 40) + "/" + "d" * 400 + ".py", "f" * 300
    names = {}
    exec(compile(f"def {function}(read, l): return read(l)", path, "exec"), names)
    calls, _ = names[function](read, LIBRARY)
    assert function.startswith(calls[1][0]) and len(calls[1][0]) > 100, calls
    assert path.endswith(calls[1][1]) and len(calls[1][1]) > 100, calls


def in_package(path):
    """Code of an installed package that calls the program back, and that the program calls."""
    names = {"look": look}
    exec(compile("def outer(f):\n  return inner(f)\ndef inner(f):\n  return f()\n", path, "exec"), names)
    return names["outer"](look) + names["outer"](lambda: names["inner"](look))


def without_own_code():
    """A thread whose calls are all of the standard library, but for the C function that it runs."""
    buffer = ctypes.create_string_buffer(SIZE)
    lengths = []
    LIBRARY.calls.restype = ctypes.c_int64
    thread = threading.Thread(target=LIBRARY.calls, args=(buffer, ctypes.c_uint64(SIZE)))
    thread.start()
    thread.join()
    calls = buffer.value.decode().split("\n")
    assert [call.split("\t")[:2] for call in calls[:-2]] == [
        ["Thread.run", "threading.py"], ["Thread._bootstrap_inner", "threading.py"],
        ["Thread._bootstrap", "threading.py"]], calls
    assert calls[-2] == calls[0]


def unknown_thread():
    """A thread that Python has not made has no calls."""
    pthread = ctypes.CDLL(None)
    start = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
    thread = ctypes.c_ulong()
    buffer = ctypes.create_string_buffer(b"untouched", SIZE)
    library = ctypes.CDLL(sys.argv[1])
    # repeat() takes a number. It only must not end the process.
    assert pthread.pthread_create(ctypes.byref(thread), None, library.repeat, ctypes.c_void_p(10)) == 0
    assert pthread.pthread_join(thread, None) == 0
    assert buffer.value == b"untouched"
    # One that comes to Python has those since it came.
    results = []
    callback = start(lambda _: results.append(look()) or 0)
    assert pthread.pthread_create(ctypes.byref(thread), None, callback, None) == 0
    assert pthread.pthread_join(thread, None) == 0
    assert [call[0] for call in results[0]] == ["read", "look", "unknown_thread.<locals>.<lambda>"], results


def traced():
    """Instructions that are instrumented."""
    sys.settrace(lambda *_: None)
    nested()
    multi_line("")
    sys.settrace(None)
    sys.setprofile(lambda *_: None)
    nested()
    next(generator())
    sys.setprofile(None)


def many_places():
    """More places than there is room for: the rest has no calls, and nothing fails."""
    for number in range(1000):
        names = {}
        exec(compile("read(library)\n" * 20, f"place {number}.py", "exec"), names | {"read": read, "library": LIBRARY})
    assert len(read(LIBRARY)[0]) < 4


def run():
    """Often enough for the interpreter to specialise."""
    for _ in range(40):
        nested()
        Model.of_class(), Model.static()
        model = Model()
        model.method(), model.value, model[3], model(), model.decorated()
        del model
        in_library_decorator()
        list(generator()), next(delegating()), sum(len(calls) for calls in delegating())
        generator().send(None)
        recursive(0), recursive(10), recursive(200)
        multi_line("")
        handler()
        asyncio.run(waits())
        closure_and_cells(1)
        [look() for _ in range(2)], {look: look() for _ in range(2)}, list(map(look, [1])), sorted([2, 1], key=look)
        (lambda *arguments: look(*arguments))(1)
        functools.partial(look, 2)()
        functools.reduce(look, [1, 2])
        eval("look()")
        class Body:
            looked = look()
        type("Made", (), {"method": look})().method()
    made_code()
    purelib = sysconfig.get_paths()["purelib"]
    for path in (purelib + "/torch/nn/linear.py", "/usr/lib/python3/dist-packages/numpy/__init__.py",
                 contextlib.__file__, "<frozen importlib>"):
        in_package(path)
    in_package("/home/user/project/__init__.py")
    threads = [threading.Thread(target=lambda: [nested() for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    without_own_code()
    unknown_thread()
    traced()


class AtTheVeryEnd:
    """Deleted when the interpreter ends, where there are no calls."""

    def __init__(self):
        self.calls, self.buffer = LIBRARY.calls, ctypes.create_string_buffer(SIZE)

    def __del__(self):
        self.calls(self.buffer, ctypes.c_uint64(SIZE))


def at_the_end():
    nested()
    many_places()
    print(f"Python {sys.version.split()[0]}: {looks} looks")


def end():
    """Ends while other threads look."""
    for _ in range(3):
        threading.Thread(target=LIBRARY.repeat, args=(ctypes.c_uint64(2**62),), daemon=True).start()
    nested()


def main():
    if sys.argv[2:] == ["end"]:
        return end()
    run()
    for _ in range(10):
        subprocess.run([sys.executable, __file__, sys.argv[1], "end"], check=True)
    atexit.register(at_the_end)


if __name__ == "__main__":
    at_the_very_end = AtTheVeryEnd()
    main()
