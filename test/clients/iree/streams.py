"""Three dispatches that depend on each other, by IREE's two ways to submit them: a stream, and a graph.

--hip_use_streams=false records each command buffer as a HIP graph. The flags are those of the
process, so that each way runs in a process of its own.
"""

import subprocess
import sys

import iree.runtime.flags
import numpy as np

from both import compare

SOURCE = """
func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64x64xf32>
  %filled = linalg.fill ins(%zero : f32) outs(%empty : tensor<64x64xf32>) -> tensor<64x64xf32>
  %ab = linalg.matmul ins(%a, %b : tensor<64x64xf32>, tensor<64x64xf32>)
      outs(%filled : tensor<64x64xf32>) -> tensor<64x64xf32>
  %ba = linalg.matmul ins(%b, %a : tensor<64x64xf32>, tensor<64x64xf32>)
      outs(%filled : tensor<64x64xf32>) -> tensor<64x64xf32>
  %c = linalg.matmul ins(%ab, %ba : tensor<64x64xf32>, tensor<64x64xf32>)
      outs(%filled : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %c : tensor<64x64xf32>
}
"""

if len(sys.argv) == 1:
    for streams in ("true", "false"):
        subprocess.run([sys.executable, __file__, streams], check=True)
else:
    iree.runtime.flags.parse_flags(f"--hip_use_streams={sys.argv[1]}")
    a, b = np.random.default_rng(9).integers(-3, 4, (2, 64, 64)).astype(np.float32)
    (c,) = compare(SOURCE, a, b)
    np.testing.assert_array_equal(c, a @ b @ (b @ a))
