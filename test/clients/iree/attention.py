"""Attention as one operation, which IREE compiles to one kernel that never stores the scores."""

import numpy as np

from both import compare

SOURCE = """
func.func @main(%q: tensor<4x64x32xf16>, %k: tensor<4x64x32xf16>, %v: tensor<4x64x32xf16>) -> tensor<4x64x32xf32> {
  %scale = arith.constant 0.17678 : f16
  %empty = tensor.empty() : tensor<4x64x32xf32>
  %out = iree_linalg_ext.attention <{indexing_maps = [
      affine_map<(h, m, n, k, l) -> (h, m, k)>, affine_map<(h, m, n, k, l) -> (h, l, k)>,
      affine_map<(h, m, n, k, l) -> (h, l, n)>, affine_map<(h, m, n, k, l) -> ()>,
      affine_map<(h, m, n, k, l) -> (h, m, n)>]}>
      ins(%q, %k, %v, %scale : tensor<4x64x32xf16>, tensor<4x64x32xf16>, tensor<4x64x32xf16>, f16)
      outs(%empty : tensor<4x64x32xf32>) {
    ^bb0(%score: f32):
      iree_linalg_ext.yield %score : f32
  } -> tensor<4x64x32xf32>
  return %out : tensor<4x64x32xf32>
}
"""

q, k, v = np.random.default_rng(6).standard_normal((3, 4, 64, 32), np.float32).astype(np.float16)
(found,) = compare(SOURCE, q, k, v, tolerance=2e-3)
scores = q.astype(np.float64) @ k.astype(np.float64).swapaxes(1, 2) * 0.17678
powers = np.exp(scores - scores.max(2, keepdims=True))
expected = powers / powers.sum(2, keepdims=True) @ v.astype(np.float64)
np.testing.assert_allclose(found, expected, rtol=0, atol=2e-3 * np.abs(expected).max())
