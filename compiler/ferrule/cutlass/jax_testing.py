"""`cutlass.jax.testing` of CuTe DSL's programs: arrays of JAX for tests of kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ferrule.compiler.operators.jax import load_jax
from ferrule.cutlass import names


def create_tensor(
    shape: Sequence[int], dtype: Any, key: Any, *, minval: int = -2, maxval: int = 2
) -> Any:
    """An array of integers, each as likely as the others: from `minval` on, below `maxval`."""
    random = load_jax("cutlass.jax.testing").random
    return random.randint(key, tuple(shape), minval, maxval).astype(dtype)


__getattr__ = names.resolver("cutlass.jax.testing")
