"""The gradient of an expectation by the adjoint method, which runs the circuit backwards on the device."""

import numpy as np
import pennylane as qml
from pennylane import numpy as pnp

QUBITS = 12


def circuit(angles):
    for wire in range(QUBITS):
        qml.RY(angles[wire, 0], wires=wire)
        qml.RZ(angles[wire, 1], wires=wire)
    for wire in range(QUBITS - 1):
        qml.CRX(angles[wire, 2], wires=[wire, wire + 1])
    return qml.expval(qml.Z(0) @ qml.X(QUBITS - 1) + 0.5 * qml.Y(5))


def gradient(device):
    node = qml.QNode(circuit, qml.device(device, wires=QUBITS), diff_method="adjoint")
    angles = pnp.array(np.random.default_rng(2).uniform(0, 2 * np.pi, (QUBITS, 3)), requires_grad=True)
    return qml.grad(node)(angles)


np.testing.assert_allclose(gradient("lightning.amdgpu"), gradient("lightning.qubit"), rtol=0, atol=1e-12)
