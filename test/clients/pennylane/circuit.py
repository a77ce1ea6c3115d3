"""A circuit of 12 qubits on lightning.amdgpu: expectations and probabilities, beside PennyLane's CPU simulator."""

import numpy as np
import pennylane as qml

QUBITS = 12


def circuit(angles):
    for layer in angles:
        for wire in range(QUBITS):
            qml.RX(layer[wire, 0], wires=wire)
            qml.RZ(layer[wire, 1], wires=wire)
        for wire in range(QUBITS):
            qml.CNOT(wires=[wire, (wire + 1) % QUBITS])
    qml.Toffoli(wires=[0, 5, 11])
    energy = qml.Hamiltonian([0.5, -1.5, 2.0], [qml.Z(0) @ qml.Z(6), qml.X(3), qml.Y(11) @ qml.Z(1)])
    return qml.expval(energy), qml.expval(qml.Z(4)), qml.probs(wires=[2, 7])


angles = np.random.default_rng(1).uniform(0, 2 * np.pi, (2, QUBITS, 2))
gpu = qml.QNode(circuit, qml.device("lightning.amdgpu", wires=QUBITS))(angles)
cpu = qml.QNode(circuit, qml.device("default.qubit", wires=QUBITS))(angles)
for one, other in zip(gpu, cpu, strict=True):
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
