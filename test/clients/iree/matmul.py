"""Matrix products of float16, bfloat16, float32 and int8, with sizes that fit no tile and one that is dynamic."""

import ml_dtypes
import numpy as np

from both import compare

SOURCE = """
func.func @main(%a: tensor<?x96xIN>, %b: tensor<96x72xIN>) -> tensor<?x72xOUT> {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %a, %c0 : tensor<?x96xIN>
  %zero = arith.constant ZERO : OUT
  %empty = tensor.empty(%rows) : tensor<?x72xOUT>
  %filled = linalg.fill ins(%zero : OUT) outs(%empty : tensor<?x72xOUT>) -> tensor<?x72xOUT>
  %c = linalg.matmul ins(%a, %b : tensor<?x96xIN>, tensor<96x72xIN>)
      outs(%filled : tensor<?x72xOUT>) -> tensor<?x72xOUT>
  return %c : tensor<?x72xOUT>
}
"""

random = np.random.default_rng(1)
for name, dtype in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16), ("f32", np.float32), ("i8", np.int8)):
    source = SOURCE.replace("IN", name).replace("OUT", "i32" if name == "i8" else "f32")
    source = source.replace("ZERO", "0" if name == "i8" else "0.0")
    if name == "i8":
        a, b = (random.integers(-128, 128, shape, dtype) for shape in ((40, 96), (96, 72)))
    else:
        a, b = (random.standard_normal(shape, np.float32).astype(dtype) for shape in ((40, 96), (96, 72)))
    (c,) = compare(source, a, b, tolerance=1e-5)
    expected = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(c, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
