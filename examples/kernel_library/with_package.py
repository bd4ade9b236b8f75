"""Calls the wheel of `kernels.py`, in an environment that has apache-tvm-ffi and NumPy only.

pip install dist/activations-1.0.0-*.whl
python with_package.py
"""

import activations
import numpy as np

x = np.linspace(-2, 2, 5, dtype=np.float32)
y = np.empty_like(x)

activations.scale(x, y, factor=3.0)
print(y)
activations.relu(x, y)
print(y)
print(activations.sum_of_squares(x))

scores = np.zeros((2, 4), dtype=np.float32)
shares = np.empty_like(scores)
activations.softmax(scores, shares)
print(shares)

try:
    activations.scale(x, y[:3])
except ValueError as error:
    print(error)
