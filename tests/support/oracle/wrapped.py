"""A wrapper under test, around a body that writes down the leaves and symbols it was given."""

from __future__ import annotations

import ctypes
import functools
import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from ferrule.compiler import targets
from ferrule.compiler.artefacts import Body, HostModule
from ferrule.compiler.origin import CompiledOrigin
from ferrule.compiler.wrapper.builder import build_wrapper, wrapper_parts
from ferrule.compiler.wrapper.callee import BodyCall
from ferrule.runtime.linking.engine import Engine
from ferrule.specs import Float32, Signature
from ferrule.specs import params as kinds
from ferrule.specs.params import Param
from oracle.arguments import BASE, Argument
from oracle.forge import FFI, AnyValue, Forged, forge, raised
from oracle.judge import Accepted
from oracle.leaves import (
    Characters,
    Leaf,
    NotANumber,
    ObjectAt,
    SlotAt,
    StreamOf,
    types_of,
)
from oracle.rounding import is_nan
from oracle.signatures import ALL_KINDS
from oracle.wrong import Wrong

MARK = 1 << 20
"""What a body writes down first: that it ran."""


def ways() -> tuple[bool, ...]:
    """The ways of building a wrapper: with code for the usual calls of its own, and without."""
    return (True, False) if "hot" in inspect.signature(build_wrapper).parameters else (True,)


class Wrapped:
    """A wrapper of a signature, loaded."""

    def __init__(self, signature: Signature, hot: bool = True) -> None:
        self.signature = signature
        self.types = [leaf for param in signature.params for leaf in types_of(param)]
        self.types += [f"i{symbol.width}" for symbol in signature.symbols]
        self.log = (ctypes.c_uint64 * (len(self.types) + 1))()
        body = Body(
            _text(self.types, ctypes.addressof(self.log)),
            "ferrule_body",
            tuple(signature.symbols),
        )
        parts = wrapper_parts(signature, BodyCall(body), (), (), None)
        wrapper = parts.text() if hot else parts.build(hot=False)
        here = targets.host()
        module = HostModule(signature, wrapper, body, needed=parts.needed)
        origin = CompiledOrigin(module, "")
        self.engine = Engine.load(origin.emit(signature.name, here.cpu, here.triple))
        address = self.engine.address(f"__tvm_ffi_{signature.name}")
        self._function = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p
        )(address)

    def disagreement(self, arguments: Sequence[Argument], wanted: Accepted | Wrong) -> str | None:
        """What is wrong with the outcome of a call; None where it is as it should be."""
        forged = forge(arguments)
        result = AnyValue(0, 0, 0)
        self.log[0] = 0
        with streams():
            status = self._function(
                None, ctypes.addressof(forged.args), len(arguments), ctypes.addressof(result)
            )
        if (result.type_index, result.payload) != (0, 0):
            return "the wrapper wrote a result"
        if status == 0 and self.log[0] != MARK:
            return "the body did not run once"
        if status != 0:
            return self._judge_refusal(status, wanted)
        if isinstance(wanted, Wrong):
            return "the call was accepted"
        seen = list(self.log)[1:]
        expected = [*wanted.leaves, *wanted.symbols]
        for i, (got, leaf) in enumerate(zip(seen, expected, strict=True)):
            if not _same(got, leaf, forged):
                return f"leaf {i}: the body saw {got:#x}, not {leaf}"
        return None

    def _judge_refusal(self, status: int, wanted: Accepted | Wrong) -> str | None:
        error = raised()
        if status != -1 or self.log[0] != 0:
            return f"status {status}, body ran: {self.log[0] != 0}"
        if isinstance(wanted, Wrong) and wanted.fits(error.kind, error.message):
            return None
        return f"the call was refused with {error}"


def _same(got: int, leaf: Leaf, forged: Forged) -> bool:
    match leaf:
        case int():
            return got == leaf
        case NotANumber(dtype):
            return is_nan(dtype, got)
        case Characters(data):
            return not data or ctypes.string_at(got, len(data)) == data
        case ObjectAt(path):
            return got == forged.slots[path].payload % (1 << 64)
        case SlotAt(path):
            return got == ctypes.addressof(forged.slots[path])
        case StreamOf(device):
            return got == (0 if device is None else stream_of(*device))


def stream_of(device_type: int, index: int) -> int:
    """The stream that `streams` makes current for a device."""
    return 0x1000 + device_type * 0x100 + index * 0x10 if index < 4 else 0


_inside: ContextVar[bool] = ContextVar("inside", default=False)


@contextmanager
def streams() -> Iterator[None]:
    """Inside, devices have current streams that differ; an inner one changes nothing."""
    if _inside.get():
        yield
        return
    devices = [(kind, index) for kind in (2, 10, 18) for index in range(4)]
    for kind, index in devices:
        _set_stream(kind, index, stream_of(kind, index))
    token = _inside.set(True)
    try:
        yield
    finally:
        _inside.reset(token)
        for kind, index in devices:
            _set_stream(kind, index, 0)


def _set_stream(kind: int, index: int, stream: int) -> None:
    status = FFI.TVMFFIEnvSetStream(kind, index, ctypes.c_void_p(stream), None)
    assert status == 0


def _text(types: Sequence[str], log: int) -> str:
    declared = "".join(f", {kind} %p{i}" for i, kind in enumerate(types))
    lines = [
        f"  %log = inttoptr i64 {log} to ptr",
        "  %before = load i64, ptr %log",
        f"  %mark = add i64 %before, {MARK}",
        "  store i64 %mark, ptr %log",
    ]
    for i, kind in enumerate(types):
        lines += [f"  {line}" for line in _logging(i, kind)]
    return "\n".join(
        [f"define i32 @ferrule_body(ptr %values{declared}) {{", *lines, "  ret i32 0", "}", ""]
    )


def _logging(place: int, kind: str) -> list[str]:
    value, wide = f"%p{place}", f"%v{place}"
    match kind:
        case "ptr":
            lines = [f"{wide} = ptrtoint ptr {value} to i64"]
        case "float":
            lines = [f"%b{place} = bitcast float {value} to i32"]
            lines += [f"{wide} = zext i32 %b{place} to i64"]
        case "double":
            lines = [f"{wide} = bitcast double {value} to i64"]
        case "i64":
            lines = [f"{wide} = add i64 {value}, 0"]
        case _:
            lines = [f"{wide} = zext {kind} {value} to i64"]
    return [
        *lines,
        f"%a{place} = getelementptr i64, ptr %log, i64 {place + 1}",
        f"store i64 {wide}, ptr %a{place}",
    ]


def sample(kind: Any) -> Param:
    """A parameter that shows whether a kind can be used at all."""
    scalar = kinds.Scalar("x", Float32)
    special: dict[type, Param] = {
        kinds.Tensor: kinds.Tensor("x", (2,), Float32, device="cpu"),
        kinds.Scalar: scalar,
        kinds.Shape: kinds.Shape("x", (2,)),
        kinds.EnvStream: kinds.EnvStream("x", "cuda"),
        kinds.Tuple: kinds.Tuple("x", (scalar,)),
        kinds.Optional: kinds.Optional("x", scalar),
        kinds.Union: kinds.Union("x", (scalar, kinds.String("x"))),
        kinds.Constant: kinds.Constant("x", 1),
        kinds.Object: kinds.Object("x", BASE),
        kinds.Array: kinds.Array("x", scalar),
        kinds.List: kinds.List("x", scalar),
        kinds.Map: kinds.Map("x", scalar, scalar),
        kinds.Dict: kinds.Dict("x", scalar, scalar),
    }
    return special[kind] if kind in special else kind("x")


@functools.cache
def supported_kinds() -> frozenset[type]:
    """The kinds of parameters that a wrapper can be built for, found by trying."""
    return frozenset(kind for kind in ALL_KINDS if _builds(sample(kind)))


def _builds(param: Param) -> bool:
    try:
        Wrapped(Signature("f", (param,)))
    except NotImplementedError:
        return False
    return True
