"""Wrappers under test: around a body that writes down what it was given, called with forged values.

`Wrapped` builds, loads and calls a wrapper through its C symbol.  Arguments are plain data (`View`
and Python values), so that a test can forge what no library hands out: null pointers, negative
sizes, missing strides, data at an odd address.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import tvm_ffi

from ferrule.compiler import targets
from ferrule.compiler.artefacts import Body, Fault, Relation
from ferrule.compiler.origin import CompiledOrigin, host_module
from ferrule.runtime.linking.engine import Engine
from ferrule.specs import Condition, Param, Requirement, Scalar, Signature, Tensor

FFI = ctypes.CDLL(tvm_ffi.libinfo.find_libtvm_ffi())
SLOTS = 64


class DLTensor(ctypes.Structure):
    """DLPack's struct."""

    _fields_ = [
        ("data", ctypes.c_uint64),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint32),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("byte_offset", ctypes.c_uint64),
    ]


class TensorObject(ctypes.Structure):
    """A Tensor object of tvm-ffi: a header, then the DLTensor."""

    _fields_ = [("header", ctypes.c_uint8 * 24), ("dl", DLTensor)]


class AnyValue(ctypes.Structure):
    """TVMFFIAny."""

    _fields_ = [
        ("type_index", ctypes.c_int32),
        ("padding", ctypes.c_int32),
        ("payload", ctypes.c_int64),
    ]


@dataclass(frozen=True)
class View:
    """A tensor to forge.  Without strides it comes as DLPack's null pointer."""

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    dtype: int = 0x00012002
    device: tuple[int, int] = (1, 0)
    data: int = 4096
    byte_offset: int = 0
    owned: bool = False  # a Tensor object rather than a DLTensor pointer


@dataclass(frozen=True)
class NullView:
    """A DLTensor pointer that is null."""


@dataclass(frozen=True)
class Raw:
    """Any other value, by its type index and payload."""

    type_index: int
    payload: int = 0


Argument = Any
"""View, NullView, Raw, or None, bool, int, float."""


def compact(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides."""
    strides, running = [], 1
    for size in reversed(shape):
        strides.append(running)
        running *= size
    return tuple(reversed(strides))


def view(*shape: int, **changes: Any) -> View:
    """A row-major float32 tensor on the CPU."""
    return View(**{"shape": shape, "strides": compact(shape), **changes})


@dataclass
class Refused(Exception):
    """The error that a wrapper set."""

    kind: str
    message: str
    backtrace: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass
class Forged:
    """Arguments in C's form, and the memory behind them."""

    args: Any
    kept: list[Any] = field(default_factory=list)


def forge(arguments: Sequence[Argument]) -> Forged:
    """The arguments of one call."""
    forged = Forged((AnyValue * max(1, len(arguments)))())
    for place, argument in enumerate(arguments):
        forged.args[place] = _forge(argument, forged.kept)
    return forged


def _forge(argument: Argument, kept: list[Any]) -> AnyValue:
    match argument:
        case None:
            return AnyValue(0, 0, 0)
        case bool():
            return AnyValue(2, 0, int(argument))
        case int():
            return AnyValue(1, 0, argument)
        case float():
            return AnyValue(3, 0, struct.unpack("<q", struct.pack("<d", argument))[0])
        case Raw(type_index, payload):
            return AnyValue(type_index, 0, payload)
        case NullView():
            return AnyValue(7, 0, 0)
        case View():
            return _forge_view(argument, kept)
    raise TypeError(argument)


def _forge_view(wanted: View, kept: list[Any]) -> AnyValue:
    rank = len(wanted.shape)
    shape = (ctypes.c_int64 * max(1, rank))(*wanted.shape)
    strides = None
    if wanted.strides is not None:
        strides = (ctypes.c_int64 * max(1, len(wanted.strides)))(*wanted.strides)
    held = TensorObject()
    held.dl = DLTensor(
        wanted.data,
        *wanted.device,
        rank,
        wanted.dtype,
        ctypes.addressof(shape),
        None if strides is None else ctypes.addressof(strides),
        wanted.byte_offset,
    )
    kept += [shape, strides, held]
    address = ctypes.addressof(held)
    if wanted.owned:
        return AnyValue(70, 0, address)
    return AnyValue(7, 0, address + TensorObject.dl.offset)


class Wrapped:
    """A wrapper, loaded."""

    def __init__(
        self,
        *params: Param,
        name: str = "f",
        relations: Sequence[Relation] = (),
        faults: Sequence[Fault] = (),
        status: int = 0,
        values: Sequence[int] = (),
        requires: Sequence[Requirement | Condition] = (),
    ) -> None:
        self.signature = Signature(name, params, requires=tuple(requires))
        self.log = (ctypes.c_int64 * SLOTS)()
        body = _body(self.signature, ctypes.addressof(self.log), relations, faults, status, values)
        here = targets.host()
        self.origin = CompiledOrigin(host_module(self.signature, body), "")
        self.engine = Engine.load(self.origin.emit(name, here.cpu, here.triple))
        self.address = self.engine.address(f"__tvm_ffi_{name}")
        self.result = AnyValue(0, 0, 0)
        self._function = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
        )(self.address)

    def function(self) -> tvm_ffi.Function:
        """The wrapper as Python calls it."""
        return tvm_ffi.Function.__from_extern_c__(self.address, keep_alive_object=self.engine)

    def __call__(self, *arguments: Argument) -> tuple[Any, ...]:
        """What the body was given: parameters, then symbols.  Raises Refused."""
        forged = forge(arguments)
        self.log[0] = 0
        status = self._function(
            None, ctypes.addressof(forged.args), len(arguments), ctypes.addressof(self.result)
        )
        assert (self.result.type_index, self.result.payload) == (0, 0)
        if status != 0:
            assert status == -1
            raise _raised()
        assert self.log[0] == 1, "the body did not run exactly once"
        return self.seen()

    @property
    def ran(self) -> bool:
        """Whether the last call reached the body."""
        return self.log[0] != 0

    def seen(self) -> tuple[Any, ...]:
        """What the body wrote down last."""
        kinds = [*map(_logged_as, self.signature.params), *("int" for _ in self.signature.symbols)]
        return tuple(_read(self.log[i + 1], kind) for i, kind in enumerate(kinds))

    def refused(self, *arguments: Argument) -> str:
        """The error of a call that must be refused before the body runs: `ValueError: …`."""
        try:
            self(*arguments)
        except Refused as error:
            assert not self.ran, "a call was refused after its body ran"
            return str(error)
        raise AssertionError("the call was accepted")


def _logged_as(param: Param) -> str:
    return "float" if isinstance(param, Scalar) and param.dtype.kind == "float" else "int"


def _read(bits: int, kind: str) -> Any:
    return struct.unpack("<d", struct.pack("<q", bits))[0] if kind == "float" else bits


def _raised() -> Refused:
    handle = ctypes.c_void_p()
    FFI.TVMFFIErrorMoveFromRaised(ctypes.byref(handle))
    assert handle.value, "a wrapper returned -1 and set no error"
    texts = (ctypes.c_uint64 * 6).from_address(handle.value + 24)
    pieces = [ctypes.string_at(texts[i], texts[i + 1]).decode() for i in (0, 2, 4)]
    FFI.TVMFFIObjectDecRef(handle)
    return Refused(*pieces)


def _body(
    signature: Signature,
    log: int,
    relations: Sequence[Relation],
    faults: Sequence[Fault],
    status: int,
    values: Sequence[int],
) -> Body:
    kinds = [_llvm_type(param) for param in signature.params]
    kinds += [f"i{symbol.width}" for symbol in signature.symbols]
    lines = [f"  %log = inttoptr i64 {log} to ptr", "  store i64 1, ptr %log"]
    for i, kind in enumerate(kinds):
        lines += [f"  {line}" for line in _logging(i, kind)]
    for i, value in enumerate(values):
        lines.append(f"  %s{i} = getelementptr i64, ptr %values, i64 {i}")
        lines.append(f"  store i64 {value}, ptr %s{i}")
    declared = "".join(f", {kind} %p{i}" for i, kind in enumerate(kinds))
    text = "\n".join(
        [f"define i32 @ferrule_body(ptr %values{declared}) {{", *lines, f"  ret i32 {status}", "}"]
    )
    symbols = tuple(signature.symbols)
    return Body(text, "ferrule_body", symbols, tuple(faults), tuple(relations))


def _llvm_type(param: Param) -> str:
    match param:
        case Tensor():
            return "ptr"
        case Scalar(dtype=dtype) if dtype.kind == "float":
            return "float" if dtype.bits == 32 else "double"
        case Scalar(dtype=dtype):
            return f"i{dtype.bits}"


def _logging(place: int, kind: str) -> list[str]:
    value = f"%p{place}"
    match kind:
        case "ptr":
            lines = [f"%v{place} = ptrtoint ptr {value} to i64"]
        case "float":
            lines = [
                f"%d{place} = fpext float {value} to double",
                f"%v{place} = bitcast double %d{place} to i64",
            ]
        case "double":
            lines = [f"%v{place} = bitcast double {value} to i64"]
        case "i64":
            lines = [f"%v{place} = add i64 {value}, 0"]
        case _:
            lines = [f"%v{place} = sext {kind} {value} to i64"]
    return [
        *lines,
        f"%a{place} = getelementptr i64, ptr %log, i64 {place + 1}",
        f"store i64 %v{place}, ptr %a{place}",
    ]
