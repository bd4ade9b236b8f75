"""Calling conventions: how a wrapper passes checked values to the code that it wraps.

A convention is a frozen dataclass with `emit`, which writes a call into the body.  One that comes
with ferrule is a file of its own, and its name here.
"""

from __future__ import annotations

from ferrule.compiler.artefacts import Fault
from ferrule.compiler.conventions.apart import Apart
from ferrule.compiler.conventions.arguments import (
    NULL,
    Argument,
    CArgument,
    HostArgument,
    InMemory,
    cast,
)
from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.c.callbacks import Callback
from ferrule.compiler.conventions.c.dltensors import DLTensors
from ferrule.compiler.conventions.c.functions import CFunction
from ferrule.compiler.conventions.c.host_arguments import Handle, Reference
from ferrule.compiler.conventions.c.outs import Out
from ferrule.compiler.conventions.c.pointers import FunctionPointer
from ferrule.compiler.conventions.c.returns import CODE, ReturnCode
from ferrule.compiler.conventions.c.safe_calls import SafeCall
from ferrule.compiler.conventions.c.structs import Array, Struct, TensorStruct, TensorStructs, Union
from ferrule.compiler.conventions.c.texts import CBytes, CString, Length
from ferrule.compiler.conventions.give import GIVEN, Give, Made, View
from ferrule.compiler.conventions.launches.cuda import CudaLaunch
from ferrule.compiler.conventions.launches.tensor_maps import Im2colMap, TensorMap
from ferrule.compiler.conventions.memref import Memref, Unranked
from ferrule.compiler.conventions.protocol import CallingConvention
from ferrule.compiler.conventions.requirements import Require
from ferrule.compiler.conventions.sequences import FirstOf, Sequence
from ferrule.compiler.conventions.sized import Sized
from ferrule.compiler.conventions.zero import Zero
from ferrule.compiler.hostcode import HostCode
from ferrule.runtime.llvm.emitter import Emitter

__all__ = [
    "CODE",
    "NULL",
    "Apart",
    "Argument",
    "Array",
    "CArgument",
    "CBytes",
    "CFunction",
    "CString",
    "Call",
    "Callback",
    "CallingConvention",
    "CudaLaunch",
    "DLTensors",
    "Emitter",
    "Fault",
    "FirstOf",
    "FunctionPointer",
    "GIVEN",
    "Give",
    "Handle",
    "HostArgument",
    "HostCode",
    "Im2colMap",
    "InMemory",
    "Length",
    "Made",
    "Memref",
    "Out",
    "Reference",
    "Require",
    "ReturnCode",
    "SafeCall",
    "Sequence",
    "Sized",
    "Struct",
    "TensorMap",
    "TensorStruct",
    "TensorStructs",
    "Union",
    "Unranked",
    "View",
    "Zero",
    "cast",
]
