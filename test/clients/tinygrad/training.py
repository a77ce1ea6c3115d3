"""Training: three steps of gradient descent on a network of two layers, with NumPy's gradients beside tinygrad's."""

import numpy as np
from tinygrad import Context, Tensor, nn

random = np.random.default_rng(3)
inputs, labels = random.standard_normal((32, 20), np.float32), random.integers(0, 5, 32)
first, second = random.standard_normal((20, 16), np.float32) / 4, random.standard_normal((16, 5), np.float32) / 4

weights = [Tensor(first), Tensor(second)]
optimizer = nn.optim.SGD(weights, lr=0.5)
losses = []
for _ in range(3):
    optimizer.zero_grad()
    loss = (Tensor(inputs) @ weights[0]).relu().matmul(weights[1]).sparse_categorical_crossentropy(Tensor(labels))
    loss.backward()
    losses.append(loss.item())  # tinygrad is lazy: computed later, it would be the new weights' loss
    with Context(TRAINING=1):
        optimizer.step()

for step in range(3):
    hidden = np.maximum(inputs @ first, 0)
    scores = hidden @ second
    chances = np.exp(scores - scores.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    np.testing.assert_allclose(losses[step], -np.log(chances[np.arange(32), labels]).mean(), rtol=1e-5)
    chances[np.arange(32), labels] -= 1
    slopes = (chances / 32) @ second.T * (hidden > 0)
    second = second - 0.5 * hidden.T @ (chances / 32)
    first = first - 0.5 * inputs.T @ slopes
np.testing.assert_allclose(weights[0].numpy(), first, rtol=1e-4, atol=1e-5)
np.testing.assert_allclose(weights[1].numpy(), second, rtol=1e-4, atol=1e-5)
