"""Dispatch keys of torch by its names of device types."""

from __future__ import annotations

from typing import Final

KEYS: Final = {
    "cpu": "CPU",
    "cuda": "CUDA",
    "xpu": "XPU",
    "mps": "MPS",
}
"""The devices whose tensors an operator takes."""
