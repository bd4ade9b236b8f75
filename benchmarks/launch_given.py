"""What the launch of a given kernel costs on the host, beside launchers written by hand in C++.

    python benchmarks/launch.py --only given

The driver is a stand-in whose calls return at once, so no GPU is needed, and what is measured is
what surrounds them. ferrule's functions are those of `compiler.build` for PTX that is there; those
in C++ use tvm-ffi's `cubin_launcher.h` with the driver's API, see `launchers.py`. The tensors say
that they are on the first GPU, and nobody reads them. What has no launch without a GPU is
measured by `gpu.py`.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import launchers
import numpy as np
import peers
import tvm_ffi
from gpu_launches import CUDA_CORE, CUPY
from harness import (
    NS,
    QUICK,
    Effort,
    Goal,
    Result,
    Row,
    Skipped,
    Table,
    call_side,
    measure,
)
from launch_overhead import address_side, reload
from launchers import CASES, Case, Launchers

import ferrule as fe
from ferrule import compiler, specs
from ferrule.compiler import conventions
from ferrule.runtime import Engine
from ferrule.runtime.abi import DeviceType, TypeIndex
from ferrule.runtime.llvm.layouts import DLTENSOR

FERRULE: Final = "ferrule"
PLAIN: Final = "C++"
CHECKED: Final = "C++ with checks"
KINDS: Final = MappingProxyType({PLAIN: "plain", CHECKED: "checked"})
SIZE: Final = 1000


# ---- ferrule ----


def built(case: Case) -> fe.Function:
    """The function of a case, with its kernel in PTX."""
    n = specs.sym_int()
    makers = {
        "t": lambda name: specs.Tensor(name, (n,), fe.Float32, device="cuda"),
        "i": lambda name: specs.Scalar(name, fe.Int32),
        "f": lambda name: specs.Scalar(name, fe.Float32),
    }
    sig = specs.Signature(case.symbol, [makers[kind](name) for name, kind in case.arguments])
    params: list[Any] = [sig[name].data for name, kind in case.arguments if kind == "t"]
    if case.tensors:
        params.append(conventions.cast(n, fe.Int64))
    params += [sig[name] for name, kind in case.arguments if kind != "t"]
    grid = (specs.ceil_div(n, launchers.BLOCK), 1, 1) if case.tensors else (1, 1, 1)
    block = launchers.BLOCK, 1, 1
    code = fe.DeviceCode.from_ptx(case.ptx)
    launch = conventions.CudaLaunch(code, launchers.KERNEL, params, grid=grid, block=block)
    return compiler.build(sig, launch)


# ---- arguments ----


class Vector:
    """A vector of float32 that says that it is on the first GPU: a `DLTensor`, and a tensor of
    tvm-ffi on it."""

    def __init__(self) -> None:
        self._array = np.zeros(SIZE, np.float32)
        self._sizes = (ctypes.c_int64 * 2)(SIZE, 1)
        sizes = ctypes.addressof(self._sizes)
        head = self._array.ctypes.data, int(DeviceType.CUDA), 0, 1, 0x00012002
        packed = struct.pack("<QiiiIQQQ", *head, sizes, sizes + 8, 0)
        assert len(packed) == DLTENSOR.size
        # A DLManagedTensor: the tensor, whatever its maker wants to remember, and no deleter.
        self._managed = ctypes.create_string_buffer(packed + bytes(16), len(packed) + 16)
        self.address = ctypes.addressof(self._managed)
        self.tensor = tvm_ffi.from_dlpack(self)

    def __dlpack_device__(self) -> tuple[int, int]:
        return int(DeviceType.CUDA), 0

    def __dlpack__(self, **_: object) -> Any:
        new = ctypes.pythonapi.PyCapsule_New
        new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        new.restype = ctypes.py_object
        return new(self.address, b"dltensor", None)


def from_python(case: Case, vectors: Sequence[Vector]) -> list[Any]:
    """The arguments of a call from Python."""
    numbers = {"i": 3, "f": 0.5}
    tensors = [vector.tensor for vector in vectors[: case.tensors]]
    return [*tensors, *(numbers[kind] for _, kind in case.arguments if kind != "t")]


def from_c(case: Case, vectors: Sequence[Vector]) -> ctypes.Array[peers.Any16]:
    """The same arguments, packed."""
    half = struct.unpack("<Q", struct.pack("<d", 0.5))[0]
    numbers = {
        "i": peers.Any16(int(TypeIndex.INT), 0, 3),
        "f": peers.Any16(int(TypeIndex.FLOAT), 0, half),
    }
    kind_of_tensor = int(TypeIndex.DLTENSOR_PTR)
    tensors = [peers.Any16(kind_of_tensor, 0, v.address) for v in vectors[: case.tensors]]
    given = [*tensors, *(numbers[kind] for _, kind in case.arguments if kind != "t")]
    return (peers.Any16 * len(given))(*given)


# ---- the sides ----


@dataclass(frozen=True, slots=True)
class Subject:
    """What is called for a case, by side: from Python a function, from C an address."""

    case: Case
    functions: dict[str, Any]
    addresses: dict[str, int]
    engine: Engine


def subject(case: Case, peer: Launchers | None, folder: Path) -> Subject:
    """All sides of a case; without `peer` ferrule alone."""
    function = built(case)
    engine = reload(function, folder / f"{case.symbol}.o")
    functions, addresses = {FERRULE: function}, {FERRULE: engine.address(_symbol(case.symbol))}
    for side, kind in KINDS.items() if peer is not None else ():
        functions[side] = peer.function(kind, case)
        addresses[side] = peer.address(kind, case)
    return Subject(case, functions, addresses, engine)


def _symbol(name: str) -> str:
    return f"__tvm_ffi_{name}"


def tables(
    subjects: Sequence[Subject], vectors: Sequence[Vector], effort: Effort
) -> tuple[Table, Table]:
    """From Python, and from a loop in machine code."""
    python, loop = [], []
    for each in subjects:
        given = from_python(each.case, vectors)
        sides = [call_side(name, f, given, effort) for name, f in each.functions.items()]
        python.append(measure(each.case.name, sides, effort))
        packed = from_c(each.case, vectors)
        machine = [address_side(name, at, packed, effort) for name, at in each.addresses.items()]
        loop.append(measure(each.case.name, machine, effort))
    return (
        Table("A launch from Python", NS, tuple(python), (FERRULE, CHECKED)),
        Table("A launch from a loop in C", NS, tuple(loop), (FERRULE, CHECKED)),
    )


def goals(python: Sequence[Row], loop: Sequence[Row]) -> Iterator[Goal]:
    """What the figures are held against: all checks, for less than a launcher that makes none."""
    for where, rows in (("Python", python), ("a loop in C", loop)):
        for row in rows:
            what = f"{row.name}, from {where}, over an unchecked launcher in C++"
            yield Goal(what, 1.0, row.ratio(FERRULE, PLAIN), "times")


def skipped(reason: str | None) -> Iterator[Skipped]:
    """What is left out, and why."""
    if reason is not None:
        yield Skipped("launchers in C++", reason)
    for name in (CUPY, CUDA_CORE):
        yield Skipped(name, "it launches on a GPU alone: benchmarks/gpu.py measures it there")


def measured(folder: Path, effort: Effort) -> Result:
    """Launches of kernels that are there, with the stand-in that is loaded."""
    is_quick = effort == QUICK
    cases = CASES[:2] if is_quick else CASES
    reason = launchers.missing()
    level = "-O0" if is_quick else "-O2"
    peer = None if reason else launchers.load(cases, folder / "launchers", level)
    subjects = [subject(case, peer, folder) for case in cases]
    vectors = [Vector() for _ in range(max(case.tensors for case in cases))]
    python, loop = tables(subjects, vectors, effort)
    held = tuple(goals(python.rows, loop.rows))
    return Result((python, loop), held, tuple(skipped(reason)))
