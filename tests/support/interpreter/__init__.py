"""The reference interpreter of the kernel IR."""

from interpreter.machine import Order, downwards, run, upwards
from interpreter.memory import Memory, OutOfBounds, Unwritten
from interpreter.stops import Endless, Stopped, Undefined

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
