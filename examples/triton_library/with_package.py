"""Calls the wheel of `rows.py`: it needs PyTorch for tensors on a GPU, and apache-tvm-ffi.

pip install dist/rows-1.0.0-*.whl
python with_package.py
"""

import rows
import torch

x, weight = torch.randn(7, 1000, device="cuda"), torch.randn(1000, device="cuda")
y, rstd = torch.empty_like(x), torch.empty(7, device="cuda")
rows.rms_norm(x, weight, y, rstd, 1e-6)
torch.testing.assert_close(y, torch.nn.functional.rms_norm(x, (1000,), weight, 1e-6))
try:
    rows.rms_norm(x, weight[:999], y, rstd, 1e-6)
except (TypeError, ValueError) as error:
    print(error)
