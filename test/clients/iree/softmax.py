"""A softmax of each row."""

import numpy as np

from both import compare

SOURCE = """
func.func @main(%x: tensor<24x200xf32>) -> tensor<24x200xf32> {
  %empty = tensor.empty() : tensor<24x200xf32>
  %y = linalg.softmax dimension(1) ins(%x : tensor<24x200xf32>) outs(%empty : tensor<24x200xf32>) -> tensor<24x200xf32>
  return %y : tensor<24x200xf32>
}
"""

x = 3 * np.random.default_rng(3).standard_normal((24, 200), np.float32)
(found,) = compare(SOURCE, x, tolerance=1e-6)
powers = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
np.testing.assert_allclose(found, powers / powers.sum(1, keepdims=True), rtol=1e-5)
