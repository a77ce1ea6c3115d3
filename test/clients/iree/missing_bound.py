"""A mistake on purpose: the last place is beyond the table. The lines are those of missing_bound.mlir."""

import pathlib

import iree.compiler
import numpy as np

from both import function, gpu

source = pathlib.Path(__file__).with_suffix(".mlir")
binary = iree.compiler.compile_file(str(source), extra_args=[*gpu(), "--iree-rocm-emit-debug-info"])
places = np.arange(64, dtype=np.int32)
places[-1] = 1000
function(binary, "hip")(np.arange(1000, dtype=np.float32), places)
