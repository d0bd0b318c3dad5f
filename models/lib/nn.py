"""Parameter initialisation and numpy functions shared by the network workloads."""

from __future__ import annotations

import numpy as np

from models.lib.data import uniform


def xavier(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Xavier-uniform float32 as PyTorch defines it for tensors of rank >= 2.

    Axes from the third on count as a receptive field: fan_in is
    shape[1] * field and fan_out is shape[0] * field.
    """
    field = int(np.prod(shape[2:]))
    bound = float(np.sqrt(6.0 / ((shape[0] + shape[1]) * field)))
    return uniform(rng, *shape, low=-bound, high=bound)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), without overflow for any x."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))


def softmax(x: np.ndarray, axis: int = -1) -> np.ndarray:
    """Softmax along one axis."""
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)
