"""Calling conventions: how a wrapper hands checked values to the code that it wraps.

A convention is a frozen dataclass with `emit`, which writes a call into the body; adding one
touches no other file.
"""

from __future__ import annotations

from ferrule.compiler.conventions.arguments import NULL, Argument, Struct, TensorStruct, cast
from ferrule.compiler.conventions.base import Call, CallingConvention
from ferrule.compiler.conventions.cuda import CudaLaunch
from ferrule.compiler.conventions.flat import FlatCall, Narrow
from ferrule.compiler.conventions.sequences import FirstOf, Sequence
from ferrule.compiler.conventions.tensormaps import TensorMap

__all__ = [
    "NULL",
    "Argument",
    "Call",
    "CallingConvention",
    "CudaLaunch",
    "FirstOf",
    "FlatCall",
    "Narrow",
    "Sequence",
    "Struct",
    "TensorMap",
    "TensorStruct",
    "cast",
]
