"""Reductions along a dimension, and over everything: a sum, an extreme, and the place of an extreme."""

import numpy as np

from both import compare

SOURCE = """
#whole = affine_map<(r, c) -> (r, c)>
#rows = affine_map<(r, c) -> (r)>
#one = affine_map<(r, c) -> ()>
func.func @main(%x: tensor<60x300xf32>) -> (tensor<60xf32>, tensor<60xi32>, tensor<f32>) {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0 : i32
  %lowest = arith.constant 0xFF800000 : f32
  %floats = tensor.empty() : tensor<60xf32>
  %ints = tensor.empty() : tensor<60xi32>
  %scalar = tensor.empty() : tensor<f32>
  %zeros = linalg.fill ins(%zero : f32) outs(%floats : tensor<60xf32>) -> tensor<60xf32>
  %minima = linalg.fill ins(%lowest : f32) outs(%floats : tensor<60xf32>) -> tensor<60xf32>
  %places = linalg.fill ins(%none : i32) outs(%ints : tensor<60xi32>) -> tensor<60xi32>
  %least = linalg.fill ins(%lowest : f32) outs(%scalar : tensor<f32>) -> tensor<f32>
  %sums = linalg.generic {indexing_maps = [#whole, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<60x300xf32>) outs(%zeros : tensor<60xf32>) {
    ^bb0(%in: f32, %sum: f32):
      %next = arith.addf %in, %sum : f32
      linalg.yield %next : f32
  } -> tensor<60xf32>
  %largest:2 = linalg.generic {indexing_maps = [#whole, #rows, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<60x300xf32>) outs(%minima, %places : tensor<60xf32>, tensor<60xi32>) {
    ^bb0(%in: f32, %best: f32, %place: i32):
      %column = linalg.index 1 : index
      %here = arith.index_cast %column : index to i32
      %greater = arith.cmpf ogt, %in, %best : f32
      %value = arith.select %greater, %in, %best : f32
      %index = arith.select %greater, %here, %place : i32
      linalg.yield %value, %index : f32, i32
  } -> (tensor<60xf32>, tensor<60xi32>)
  %top = linalg.generic {indexing_maps = [#whole, #one], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<60x300xf32>) outs(%least : tensor<f32>) {
    ^bb0(%in: f32, %best: f32):
      %next = arith.maximumf %in, %best : f32
      linalg.yield %next : f32
  } -> tensor<f32>
  return %sums, %largest#1, %top : tensor<60xf32>, tensor<60xi32>, tensor<f32>
}
"""

x = np.random.default_rng(5).integers(-1000, 1000, (60, 300)).astype(np.float32)
sums, places, top = compare(SOURCE, x)
np.testing.assert_array_equal(sums, x.sum(1))
np.testing.assert_array_equal(places, x.argmax(1))
np.testing.assert_array_equal(top, x.max())
