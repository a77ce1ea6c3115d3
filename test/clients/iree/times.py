"""Times of modules on the GPU, or with IREE's CPU backend. A call also copies the arguments and the result."""

import os

import iree.compiler
import numpy as np

import attention
import convolution
import matmul
import softmax
from both import CPU, compare, function, gpu, results
from row_times import row

OPTIONS, DRIVER = (CPU, "local-task") if "UPTEMPO_OWN_WAY" in os.environ else (gpu(), "hip")
random = np.random.default_rng(1)


def measure(name, source, *inputs):
    compare(source, *inputs, tolerance=2e-3)
    call = function(iree.compiler.compile_str(source, extra_args=OPTIONS), DRIVER)
    row(name, lambda: results(call, inputs))


def normal(*shape):
    return random.standard_normal(shape, np.float32)


product = matmul.SOURCE.replace("IN", "f32").replace("OUT", "f32").replace("ZERO", "0.0")
measure("matrix product, 4,096 x 96 x 72 float32", product, normal(4096, 96), normal(96, 72))
measure("softmax, 512 rows of 1,000 float32", softmax.SOURCE.replace("24x200", "512x1000"), normal(512, 1000))
wide = attention.SOURCE.replace("64x32", "256x32")
measure("attention, 4 heads of 256 x 32 float16", wide, *normal(3, 4, 256, 32).astype(np.float16))
images = convolution.SOURCE.replace("2x17x17x8", "32x17x17x8").replace("2x8x8x16", "32x8x8x16")
measure("convolution, 32 images of 17 x 17 x 8 float32", images, normal(32, 17, 17, 8), normal(3, 3, 8, 16), normal(16))
