"""Calls each function of a module that IREE has compiled from a test of its own. These compare by
calling a module "check", which the class Check below is: no wheel has IREE's iree-check-module.

  python iree_check.py MODULE.vmfb [FLAG...]

The flags are those of IREE's runtime.
"""

import pathlib
import sys

import iree.runtime
import ml_dtypes
import numpy as np

# Element types that NumPy does not have: the type of the same size, and its meaning.
ELEMENTS = iree.runtime.HalElementType
FLOATS = {
    int(ELEMENTS.BFLOAT_16): (ELEMENTS.UINT_16, ml_dtypes.bfloat16),
    int(ELEMENTS.FLOAT_8_E4M3_FN): (ELEMENTS.UINT_8, ml_dtypes.float8_e4m3fn),
    int(ELEMENTS.FLOAT_8_E4M3_FNUZ): (ELEMENTS.UINT_8, ml_dtypes.float8_e4m3fnuz),
    int(ELEMENTS.FLOAT_8_E5M2): (ELEMENTS.UINT_8, ml_dtypes.float8_e5m2),
    int(ELEMENTS.FLOAT_8_E5M2_FNUZ): (ELEMENTS.UINT_8, ml_dtypes.float8_e5m2fnuz),
    int(ELEMENTS.FLOAT_8_E8M0_FNU): (ELEMENTS.UINT_8, ml_dtypes.float8_e8m0fnu),
}


def host(device, reference):
    """A copy of a buffer view's elements."""
    view = reference.deref(iree.runtime.HalBufferView)
    element = int(view.element_type)
    dtype = None
    if element in FLOATS:
        plain, dtype = FLOATS[element]
        view = iree.runtime.HalBufferView(view.get_buffer(), view.shape, plain)
    array = iree.runtime.DeviceArray(device, view, implicit_host_transfer=True).to_host()
    return element, array.view(dtype) if dtype else array


class Check:
    """The functions that the tests call. Arguments are references to the one device and to buffer views."""

    def __init__(self, device):
        self.device = device
        self.calls = 0

    def true(self, value):
        self.calls += 1
        assert value

    def false(self, value):
        self.calls += 1
        assert not value

    def pair(self, *references):
        self.calls += 1
        (kind, one), (other_kind, other) = (host(self.device, reference) for reference in references)
        assert (kind, one.shape) == (other_kind, other.shape)
        return one, other

    def all_true(self, device, reference):
        self.calls += 1
        assert np.all(host(self.device, reference)[1])

    def equal(self, device, one, other):
        one, other = self.pair(one, other)
        assert one.tobytes() == other.tobytes(), f"{one}\nis not\n{other}"

    def almost_equal(self, device, one, other, absolute, relative):
        wide = [array.astype(complex if array.dtype.kind == "c" else float) for array in self.pair(one, other)]
        np.testing.assert_allclose(*wide, atol=absolute, rtol=relative)


def main():
    path, *flags = sys.argv[1:]
    iree.runtime.flags.parse_flags(*flags)
    config = iree.runtime.Config("hip")
    check = Check(config.device)
    interface = iree.runtime.PyModuleInterface("check", lambda interface: check)
    # The calling convention: i for i32, f for f32, r for a reference, v for no result.
    interface.export("expect_true", "0i_v", Check.true)
    interface.export("expect_false", "0i_v", Check.false)
    interface.export("expect_all_true", "0rr_v", Check.all_true)
    interface.export("expect_eq", "0rrr_v", Check.equal)
    interface.export("expect_almost_eq", "0rrrff_v", Check.almost_equal)
    module = iree.runtime.VmModule.copy_buffer(config.vm_instance, pathlib.Path(path).read_bytes())
    modules = [*config.default_vm_modules, interface.create(), module]
    context = iree.runtime.VmContext(config.vm_instance, modules=modules)
    names = [name for name in module.function_names if not name.startswith("__")]
    assert names, "no functions"
    for name in names:
        before = check.calls
        context.invoke(module.lookup_function(name), iree.runtime.VmVariantList(0), iree.runtime.VmVariantList(0))
        assert check.calls > before, f"{name} checks nothing"


main()
