"""The reference interpreter of the kernel IR."""

from interpreter.machine import Endless, Order, Stopped, Undefined, downwards, run, upwards
from interpreter.memory import Memory, OutOfBounds, Unwritten

__all__ = [
    "Endless",
    "Memory",
    "Order",
    "OutOfBounds",
    "Stopped",
    "Undefined",
    "Unwritten",
    "downwards",
    "run",
    "upwards",
]
