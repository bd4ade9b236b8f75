"""A call by the direct entry and one by the slow path: values for every kind of parameter.

`both(names, values)` calls a function of parameters of these kinds by both paths, and gives the
outcome and what the body saw of each, which are the same.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import tvm_ffi
from oracle.wrapped import Wrapped
from packed_functions import NoOrigin, outcome, slow

from ferrule import specs
from ferrule.runtime import Function, from_dlpack, make_function

N, M, S, T = (specs.sym_int64(symbol=name) for name in ("n", "m", "s", "t"))


class Pair(NamedTuple):
    x: Any
    y: Any


@dataclass
class Point:
    x: Any
    y: Any


class Backwards(tuple[Any, ...]):
    """A tuple whose items are not those in its memory."""

    _fields = ("x", "y")

    def __iter__(self) -> Iterator[Any]:
        return iter((7, (8.0,)))


@dataclass
class Alike:
    """As the fields of the record are, some of them values that Python makes."""

    a: Any
    c: Any

    @property
    def b(self) -> Any:
        return self.c


class Struct:
    __slots__ = ("a", "b")

    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b


class Named(NamedTuple):
    a: Any
    b: Any


class Answers:
    """An object with an address, whose methods answer what they were given."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __tvm_ffi_opaque_ptr__(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Streams(Answers):
    def __cuda_stream__(self) -> Any:
        return self.answer


def _int(name: str, dtype: specs.DType = specs.Int32) -> specs.Scalar:
    return specs.Scalar(name, dtype)


def _vector(name: str, **options: Any) -> specs.Tensor:
    return specs.Tensor(name, (N,), specs.Float32, device="cpu", **options)


PARAMS: dict[str, Callable[[str], specs.Param]] = {
    "any strides": lambda p: specs.Tensor(
        p, (N, M), specs.Float32, strides=(S, T), align=1, device="cpu"
    ),
    "complex": lambda p: specs.Tensor(p, (N,), specs.Complex64, device="cpu"),
    "read-only": lambda p: _vector(p, read_only=True),
    "owning": lambda p: _vector(p, owning=True),
    "int8": lambda p: _int(p, specs.Int8),
    "uint64": lambda p: _int(p, specs.Uint64),
    "float": lambda p: _int(p, specs.Float32),
    "bool": lambda p: _int(p, specs.Boolean),
    "pointer": lambda p: specs.Pointer(p, specs.Float32),
    "stream": lambda p: specs.Stream(p),
    "optional": lambda p: specs.Optional(p, _vector(p)),
    "union": lambda p: specs.Union(p, (_int(p), _vector(p))),
    "tuple": lambda p: specs.Tuple(p, (_int("0"), specs.Tuple("1", (_int("0", specs.Float64),)))),
    "record": lambda p: specs.Tuple(
        p, (_int("a"), specs.Optional("b", _int("b", specs.Float64))), fields=True
    ),
    "tensors": lambda p: specs.Tuple(p, (_vector("0"), specs.Optional("1", _int("1")))),
    "containers": lambda p: specs.Union(
        p, (_int(p), specs.List(p, _int(p)), specs.Tuple(p, (_int("0"), _int("1"))))
    ),
    "constant": lambda p: specs.Constant(p, 3),
    "none": lambda p: specs.NoneValue(p),
    "function": lambda p: specs.Function(p),
    "text": lambda p: specs.String(p),
    "bytes": lambda p: specs.Bytes(p),
    "dtype": lambda p: specs.DataType(p),
    "device": lambda p: specs.Device(p),
    "shape": lambda p: specs.Shape(p, (N, 2)),
    "list": lambda p: specs.List(p, _int(p)),
    "any": lambda p: specs.AnyValue(p),
}

EXACT = frozenset({"any strides", "read-only", "int8", "float", "bool", "pointer", "stream"})
EXACT |= {"uint64", "optional", "union", "tuple", "record", "tensors", "constant", "none"}
EXACT |= {"function"}
"""Parameters whose leaves do not depend on where the call puts temporary values."""

GROUPS: tuple[tuple[str, ...], ...] = (
    ("any strides",),
    ("read-only", "read-only"),
    ("int8", "float", "bool"),
    ("any strides", "int8", "read-only", "float"),
    ("uint64", "pointer", "stream"),
    ("optional", "union"),
    ("tuple", "tensors"),
    ("record", "pointer", "stream"),
    ("constant", "none", "function"),
    ("owning", "text", "bytes"),
    ("dtype", "device", "shape"),
    ("list", "any"),
)


def _arrays() -> list[Any]:
    base = np.arange(24, dtype=np.float32)
    frozen = base[:4].copy()
    frozen.flags.writeable = False
    packed = np.zeros(4, np.dtype([("a", "u1"), ("b", "f4")]))
    found: list[Any] = [base[:4], base[::2], base[::-1], base.reshape(4, 6), base.reshape(4, 6).T]
    found += [
        base.reshape(4, 6)[:, ::3],
        base[:0],
        base[:1],
        frozen,
        packed["b"],
        base.astype(">f4"),
    ]
    found += [base.astype(kind) for kind in "?bhilqBHILQefdFD"]
    found += [
        np.float32(1).reshape(()),
        np.zeros((1,) * 9, np.float32),
        np.zeros((3, 0), np.float32),
    ]
    found += [base.view(np.memmap), np.zeros(2, object), np.zeros(2, "S3"), np.zeros(2, "M8[s]")]
    found += [np.zeros(2, np.longdouble), tvm_ffi.from_dlpack(base), from_dlpack(base[:4])]
    return found


_ANSWERS: tuple[Any, ...] = (
    *(4096, 0, -1, 1 << 63, 1 << 64, True, 1.5, "x", None, (0, 4096), (0, 1 << 63)),
    *((0, "x"), (0,), (), [0, 4096], (0, np.int64(4096)), LookupError("gone")),
)


def values_of_all_kinds() -> list[Any]:
    numbers: list[Any] = [0, 1, -1, 3, 127, 128, 1 << 31, (1 << 63) - 1, 1 << 63, -(1 << 63)]
    numbers += [-(1 << 63) - 1, 1 << 70, True, False, 1.5, float("nan"), 1e300, Fraction(1, 2), 1j]
    numbers += [np.bool_(True), np.int8(3), np.uint64(1 << 63), np.float16(2), specs.Int32(4)]
    texts = ["", "x", "1234567", "12345678", "cpu", "float32", "a\0b", "größe" * 3, "\ud800"]
    blobs = [b"", b"1234567", b"12345678", bytearray(b"abc"), memoryview(b"abc")]
    tuples = [(), (1,), (1, (2.0,)), [1, (2,)], (1, (2.0,), 3), (True, (1,)), (1, (1 << 70,))]
    tuples += [Pair(1, (2.0,)), Point(1, (2.0,)), (np.int8(1), (2,)), ((1, 2), 3), (4, 2), [4, 2]]
    tuples += [(_arrays()[0], None), (_arrays()[0], 1), (_arrays()[8], 1), (None, None)]
    more = [None, ctypes.c_void_p(4096), ctypes.c_void_p(), len, int, object(), {"a": 1}, ...]
    more += [tvm_ffi.get_global_func("ffi.Array"), tvm_ffi.Array([1, 2]), tvm_ffi.Shape((4, 2))]
    more += [tvm_ffi.dtype("float32"), tvm_ffi.device("cpu", 0), specs.Float32, specs.Float32(2.5)]
    tuples += [Backwards((1, (2.0,))), Backwards((1, 2.0)), Pair(1, 2), Point(1, 2)]
    tuples += [Named(1, 2.5), Named(1 << 40, 2.5), Struct(1, None), Struct(1, "x"), Alike(1, 2.5)]
    tuples += [Named(1, (2.0,)), Struct(1, (2.0,)), object.__new__(Struct), Named(*_arrays()[:2])]
    more += [kind(answer) for kind in (Answers, Streams) for answer in _ANSWERS]
    one, two = ctypes.c_float(1), ctypes.c_double(2)
    more += [ctypes.pointer(one), ctypes.pointer(two), ctypes.byref(one), ctypes.byref(two)]
    more += [ctypes.POINTER(ctypes.c_float)(), (ctypes.c_float * 4)(), (ctypes.c_double * 4)()]
    more += [ctypes.c_char_p(b"abc"), ctypes.c_wchar_p("abc"), one]
    return [*numbers, *texts, *blobs, *tuples, *more, *_arrays(), *_torch_values()]


def _torch_values() -> list[Any]:
    torch = sys.modules.get("torch")
    if torch is None:
        return []

    class Plain(torch.Tensor):  # type: ignore[misc,name-defined]
        pass

    class Dispatching(torch.Tensor):  # type: ignore[misc,name-defined]
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise RuntimeError("dispatched")

    base = torch.arange(24, dtype=torch.float32)
    found = [base, base[:4], base.reshape(4, 6).t(), base[:0], torch.tensor(1.0), base.bfloat16()]
    found += [torch.nn.Parameter(base[:4]), base.clone().requires_grad_(), base.to_sparse()]
    found += [base[:4].as_subclass(Plain), base[:4].as_subclass(Dispatching), base[:4].cfloat()]
    found += [found[-1].conj(), found[-1].conj().imag]
    return [*found, base.to("meta"), torch.float32, torch.device("cpu"), torch.Size((4, 2))]


@cache
def _function(names: tuple[str, ...]) -> tuple[Function, Wrapped]:
    params = tuple(PARAMS[name](f"a{i}") for i, name in enumerate(names))
    wrapped = Wrapped(specs.Signature("f", params))
    address = wrapped.engine.address("__tvm_ffi_f")
    made = make_function(address, wrapped.signature, NoOrigin(), owner=wrapped.engine)
    return made, wrapped


def both(names: tuple[str, ...], values: Sequence[Any]) -> tuple[Any, Any]:
    """Outcome and what the body saw, of the entry and of the slow path.

    The slow path may teach the entry a class, so the entry is asked again: the second outcome that
    differs from that of the slow path is the one which is given.
    """
    called, wrapped = _function(names)
    found = []
    entry = lambda: called(*values)  # noqa: E731
    for call in (entry, lambda: slow(called, *values), entry):
        ctypes.memset(wrapped.log, 0, ctypes.sizeof(wrapped.log))
        result = outcome(call)
        exact = EXACT.issuperset(names)
        found.append((result, list(wrapped.log) if exact else wrapped.log[0]))
    first, other, again = found
    return (first if first != other else again), other


VALUES = values_of_all_kinds()


@cache
def good(name: str) -> list[int]:
    """The values that the parameter takes, by number."""
    called, _ = _function((name,))
    return [i for i, value in enumerate(VALUES) if outcome(lambda v=value: called(v)) is None]
