"""The call plan of a function: which Python types each parameter takes as they stand.

The gate (`gate.py`) reads the plan as C memory; `PLAN` and `ACCEPT` of `gate.py` are its layouts. A
plan is immutable and holds the types that it names, so an address in it is never reused.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import tvm_ffi

from ferrule import specs

NUMPY_FLAGS_OFFSET: Final = 64
"""Where `PyArrayObject.flags` lies, in every numpy since 1.0; tried before it is relied on."""

NUMPY_WRITEABLE: Final = 0x0400


@dataclass(frozen=True, slots=True)
class Accepted:
    """The types that one parameter takes as they stand.

    Instances of `array` are taken if they are writable.
    """

    types: tuple[type[Any], ...]
    array: type[Any] | None = None


@dataclass(frozen=True, slots=True)
class CallPlan:
    """A plan in C memory, valid while this object lives."""

    accepted: tuple[Accepted, ...]
    address: int
    memory: tuple[Any, ...]


def make_plan(params: Sequence[specs.Param]) -> CallPlan:
    """The plan for these parameters, with the frameworks that the process has imported by now."""
    accepted = tuple(accepted_types(param) for param in params)
    tables = {entry: _table(entry) for entry in accepted}
    addresses = [ctypes.addressof(tables[entry]) for entry in accepted]
    plan = (ctypes.c_uint64 * (1 + len(accepted)))(len(accepted), *addresses)
    return CallPlan(accepted, ctypes.addressof(plan), (plan, *tables.values()))


def accepted_types(param: specs.Param) -> Accepted:
    """What a parameter takes without a look by Python."""
    match param:
        case specs.Tensor():
            return Accepted(_tensor_types(), np.ndarray if _numpy_flags_found() else None)
        case specs.Scalar(dtype=dtype):
            return Accepted((float, int, bool) if dtype.kind == "float" else (int, bool))


def _table(entry: Accepted) -> ctypes.Array[ctypes.c_uint64]:
    """`array` or null, the types, null."""
    types = [id(kind) for kind in entry.types]
    array = 0 if entry.array is None else id(entry.array)
    return (ctypes.c_uint64 * (len(types) + 2))(array, *types, 0)


def _tensor_types() -> tuple[type[Any], ...]:
    torch = sys.modules.get("torch")
    if torch is None:
        return (tvm_ffi.Tensor,)
    return (torch.Tensor, tvm_ffi.Tensor, torch.nn.Parameter)


@cache
def _numpy_flags_found() -> bool:
    """Whether an array's flags are where the gate reads them."""
    array = np.zeros(2)
    readonly = np.zeros(2)
    readonly.flags.writeable = False
    found = [_raw_flags(array), _raw_flags(readonly)]
    return (
        found == [array.flags.num, readonly.flags.num]
        and bool(found[0] & NUMPY_WRITEABLE)
        and not found[1] & NUMPY_WRITEABLE
    )


def _raw_flags(array: np.ndarray[Any, Any]) -> int:
    return ctypes.c_int32.from_address(id(array) + NUMPY_FLAGS_OFFSET).value
