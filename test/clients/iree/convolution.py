"""A convolution of images in two dimensions with strides, and the sum with a bias that IREE fuses with it."""

import numpy as np

from both import compare

SOURCE = """
func.func @main(%image: tensor<2x17x17x8xf32>, %filter: tensor<3x3x8x16xf32>, %bias: tensor<16xf32>)
    -> tensor<2x8x8x16xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x8x8x16xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x8x8x16xf32>) -> tensor<2x8x8x16xf32>
  %sums = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : vector<2xi64>, strides = dense<2> : vector<2xi64>}
      ins(%image, %filter : tensor<2x17x17x8xf32>, tensor<3x3x8x16xf32>)
      outs(%filled : tensor<2x8x8x16xf32>) -> tensor<2x8x8x16xf32>
  %result = linalg.generic {
      indexing_maps = [affine_map<(n, h, w, c) -> (n, h, w, c)>, affine_map<(n, h, w, c) -> (c)>,
                       affine_map<(n, h, w, c) -> (n, h, w, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%sums, %bias : tensor<2x8x8x16xf32>, tensor<16xf32>) outs(%empty : tensor<2x8x8x16xf32>) {
    ^bb0(%sum: f32, %add: f32, %out: f32):
      %one = arith.addf %sum, %add : f32
      %positive = arith.maximumf %one, %zero : f32
      linalg.yield %positive : f32
  } -> tensor<2x8x8x16xf32>
  return %result : tensor<2x8x8x16xf32>
}
"""

random = np.random.default_rng(2)
image, filters, bias = (random.standard_normal(shape, np.float32) for shape in ((2, 17, 17, 8), (3, 3, 8, 16), (16,)))
(found,) = compare(SOURCE, image, filters, bias, tolerance=1e-5)
windows = np.lib.stride_tricks.sliding_window_view(image.astype(np.float64), (3, 3), (1, 2))[:, ::2, ::2]
expected = np.maximum(np.einsum("nyxcij,ijcf->nyxf", windows, filters) + bias, 0)
np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * expected.max())
