"""A Python program for the wheel's test: loads HIP, fills memory of the GPU and reads it back."""

import ctypes

hip = ctypes.CDLL("libamdhip64.so")


def call(name, *arguments):
    status = getattr(hip, name)(*arguments)
    if status != 0:
        raise SystemExit(f"{name} returned {status}")


size = 4096
count, address, host = ctypes.c_int(), ctypes.c_void_p(), (ctypes.c_ubyte * size)()
call("hipGetDeviceCount", ctypes.byref(count))
call("hipMalloc", ctypes.byref(address), ctypes.c_size_t(size))
call("hipMemset", address, 42, ctypes.c_size_t(size))
call("hipMemcpy", host, address, ctypes.c_size_t(size), 2)  # hipMemcpyDeviceToHost
call("hipFree", address)
print(f"{count.value} GPU, {sum(value == 42 for value in host)} bytes of 42")
