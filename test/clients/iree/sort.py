"""A sort of keys with their values, by IREE's own operation, with the comparison as a region."""

import numpy as np

from both import compare

SOURCE = """
func.func @main(%keys: tensor<8x100xf32>, %values: tensor<8x100xi32>) -> (tensor<8x100xf32>, tensor<8x100xi32>) {
  %sorted:2 = iree_linalg_ext.sort dimension(1) outs(%keys, %values : tensor<8x100xf32>, tensor<8x100xi32>) {
    ^bb0(%a: f32, %b: f32, %x: i32, %y: i32):
      %first = arith.cmpf olt, %a, %b : f32
      iree_linalg_ext.yield %first : i1
  } -> tensor<8x100xf32>, tensor<8x100xi32>
  return %sorted#0, %sorted#1 : tensor<8x100xf32>, tensor<8x100xi32>
}
"""

keys = np.random.default_rng(4).standard_normal((8, 100), np.float32)
values = np.tile(np.arange(100, dtype=np.int32), (8, 1))
found, places = compare(SOURCE, keys, values)
np.testing.assert_array_equal(found, np.sort(keys, 1))
np.testing.assert_array_equal(places, np.argsort(keys, 1))
