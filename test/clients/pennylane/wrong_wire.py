"""A mistake on purpose: a gate on a qubit that the state does not have, by the simulator's own operations.

PennyLane's devices refuse such a wire. Below them nothing does.
"""

from pennylane_lightning import lightning_amdgpu_ops

state = lightning_amdgpu_ops.StateVectorC128(4)
state.PauliX([9], False, [])  # finds: memory out-of-bounds
