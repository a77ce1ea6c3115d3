"""Debug mode: kernels check their indices and assertions, and the error reaches Python."""

import quadrants as qd

qd.init(arch=qd.amdgpu, debug=True)

x = qd.field(qd.i32, 16)


@qd.kernel
def touch(count: qd.i32):
    for i in range(count):
        x[i] = i


@qd.kernel
def insist(limit: qd.i32):
    for i in x:
        assert x[i] < limit, "too large"


def error_of(kernel, argument):
    try:
        kernel(argument)
        qd.sync()
    except AssertionError as error:
        return str(error)
    return ""


touch(16)
insist(16)
assert list(x.to_numpy()) == list(range(16))
assert "indices (16)" in error_of(touch, 17)
assert "too large" in error_of(insist, 8)
