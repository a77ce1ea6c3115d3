"""A small ONNX model: two convolutions, a pool, a dense layer and a softmax, from the file to the device."""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.reference
from onnx import helper

from both import compare


def model():
    random = np.random.default_rng(7)
    shapes = dict(first=(8, 1, 3, 3), second=(8, 8, 3, 3), dense=(10, 128))
    weights = []
    for name, shape in shapes.items():
        values = random.standard_normal(shape, np.float32) / np.sqrt(np.prod(shape[1:]), dtype=np.float32)
        weights.append(onnx.numpy_helper.from_array(values, name))
    nodes = [
        helper.make_node("Conv", ["image", "first"], ["edges"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["edges"], ["positive"]),
        helper.make_node("MaxPool", ["positive"], ["small"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Conv", ["small", "second"], ["shapes"], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Flatten", ["shapes"], ["flat"]),
        helper.make_node("Gemm", ["flat", "dense"], ["scores"], transB=1),
        helper.make_node("Softmax", ["scores"], ["chances"]),
    ]
    image = helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, [3, 1, 16, 16])
    chances = helper.make_tensor_value_info("chances", onnx.TensorProto.FLOAT, [3, 10])
    graph = helper.make_graph(nodes, "main", [image], [chances], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def imported(model):
    """The model in MLIR, by IREE's importer."""
    with tempfile.TemporaryDirectory() as folder:
        source, result = pathlib.Path(folder, "model.onnx"), pathlib.Path(folder, "model.mlir")
        onnx.save(model, source)
        subprocess.run([sys.executable, "-m", "iree.compiler.tools.import_onnx", source, "-o", result], check=True)
        return result.read_text()


classifier = model()
image = np.random.default_rng(8).standard_normal((3, 1, 16, 16), np.float32)
(found,) = compare(imported(classifier), image, tolerance=1e-5)
(expected,) = onnx.reference.ReferenceEvaluator(classifier).run(None, {"image": image})
np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
