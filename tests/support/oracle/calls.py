"""Random calls of a signature: good ones, and such as are wrong in one or two places.

A good call is made from values of the symbols.  It need not be good in the end: an expression can
have no value for them, a size can be negative.  The oracle says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import draws as st

from ferrule.runtime.values.foreign import has_big_ints
from ferrule.specs import DEVICE_CODES, Dim, DType, Signature, Sym, evaluate
from ferrule.specs import params as kinds
from ferrule.specs.params import Param
from oracle.arguments import (
    BASE,
    DERIVED,
    INT64,
    OTHER,
    Argument,
    Big,
    Blob,
    Dev,
    Dtype,
    Handle,
    Items,
    Moved,
    NullView,
    Numbers,
    Opaque,
    Pairs,
    Text,
    View,
    compact,
    fits,
)
from oracle.signatures import chance
from oracle.values import DTYPE_NAMES

USUAL = st.sampled_from([1, 2, 3, 4, 5, 8, 16])
ODD = st.sampled_from([0, 1, 2, 3, 7, 8, 24, -1, -8, 1 << 31, (1 << 31) - 1, 1 << 40, 1 << 62])
BIG = st.builds(
    Big,
    st.sampled_from([1 << 63, (1 << 64) - 1, 1 << 64, -(1 << 64), 1 << 200, 10**400, -(10**400)])
    | st.integers(1 << 63, 1 << 1100)
    | st.integers(-(1 << 1100), -(1 << 63) - 1),
)
"""Ints of more than 64 bits."""

NUMBERS = st.sampled_from(
    [0, 1, 2, 127, 128, 255, 256, 65535, 65536, -1, -2, -128, -129, 1 << 31, 1 << 32, *INT64]
)
FLOATS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.5, 65519.0, 65520.0, 3.4e38, 3.5e38, 6e-8, 1.00390625, 1e-45]),
    st.sampled_from([float("inf"), float("-inf"), float("nan"), 1.0019531, 1.0058593750001]),
    st.floats(),
)


@st.composite
def calls(draw: st.Draw, signature: Signature) -> list[Argument]:
    """The arguments of one call."""
    values = {}
    for symbol in signature.symbols:
        usual = draw(USUAL) * symbol.divisibility
        values[symbol] = draw(ODD) if chance(draw, 10) else usual
    given = [p for p in signature.params if not isinstance(p, kinds.EnvStream)]
    gpu = draw(st.integers(0, 1))
    arguments = [draw(fitting(param, draw(_nearly(values)), gpu)) for param in given]
    if arguments and draw(st.booleans()):
        for _ in range(draw(st.integers(1, 2))):
            spoilt = draw(st.integers(0, len(arguments) - 1))
            arguments[spoilt] = draw(wrong(arguments[spoilt]))
    if chance(draw, 40):
        return [*arguments, 1] if draw(st.booleans()) else arguments[:-1]
    return arguments


@st.composite
def _nearly(draw: st.Draw, values: dict[Sym, int]) -> dict[Sym, int]:
    """The values of the symbols for one argument: rarely one of them is another."""
    if values and chance(draw, 12):
        symbol = draw(st.sampled_from(list(values)))
        return {**values, symbol: values[symbol] + draw(st.sampled_from([symbol.divisibility, 1]))}
    return values


@st.composite
def fitting(draw: st.Draw, param: Param, values: dict[Sym, int], gpu: int) -> Argument:
    """An argument that its parameter takes."""
    match param:
        case kinds.Tensor():
            return draw(views(param, values, gpu))
        case kinds.Scalar(dtype=dtype):
            return draw(numbers(dtype))
        case kinds.Shape(dims=dims):
            return draw(shapes(tuple(_value(dim, values) for dim in dims)))
        case kinds.Tuple(items=items):
            inside = tuple(draw(fitting(item, values, gpu)) for item in items)
            return Items(inside, draw(st.sampled_from(["array", "list"])))
        case kinds.Optional(item=item):
            return None if draw(st.booleans()) else draw(fitting(item, values, gpu))
        case kinds.Union(members=members):
            return draw(fitting(draw(st.sampled_from(members)), values, gpu))
        case kinds.Array(item=item) | kinds.List(item=item):
            form = "array" if isinstance(param, kinds.Array) else "list"
            wanted = item or kinds.AnyValue("x")
            count = draw(st.integers(0, 3))
            return Items(tuple(draw(fitting(wanted, values, gpu)) for _ in range(count)), form)
        case kinds.Map() | kinds.Dict():
            return draw(pairs(param))
        case kinds.Constant(value=value):
            return (
                Text(value.encode(), draw(forms(value.encode())))
                if isinstance(value, str)
                else value
            )
    return draw(_SIMPLE[type(param)](param))


@st.composite
def views(draw: st.Draw, spec: kinds.Tensor, values: dict[Sym, int], gpu: int) -> View:
    shape = [_value(dim, values) for dim in spec.shape]
    strides = [_value(dim, values) for dim in spec.strides]
    if spec.packed:
        unit = spec.strides.index(1)
        shape[unit] //= 2
        strides = [s if spec.strides[i] == 1 else s // 2 for i, s in enumerate(strides)]
    if 0 in shape or 1 in shape:
        moot = [
            draw(ODD)
            if size in (0, 1) and axis not in spec.exact_strides and chance(draw, 2)
            else None
            for axis, size in enumerate(shape)
        ]
        strides = [s if m is None else m for s, m in zip(strides, moot, strict=True)]
    leave_out = tuple(strides) == compact(shape) and chance(draw, 4)
    offset = draw(st.sampled_from([0, 0, 0, 16, 256]))
    index = spec.device_id or (0 if spec.device == "cpu" or spec.device_id == 0 else gpu)
    return View(
        tuple(shape),
        None if leave_out else tuple(strides),
        dtype=0x00020411 if spec.packed else spec.dtype.dlpack,
        device=(DEVICE_CODES[str(spec.device)], index),
        data=0 if 0 in shape and draw(st.booleans()) else 1 << 16,
        byte_offset=offset,
        owned=spec.owning or draw(st.booleans()),
    )


def _value(dim: Dim, values: dict[Sym, int]) -> int:
    try:
        return evaluate(dim, values)
    except (OverflowError, ZeroDivisionError):
        return 3


@st.composite
def numbers(draw: st.Draw, dtype: DType) -> Argument:
    """A number in the range of a dtype."""
    if dtype.kind == "bool" or chance(draw, 6):
        return draw(st.sampled_from([True, False, 0, 1]))
    if dtype.kind == "float":
        return draw(FLOATS | st.integers(*INT64) | NUMBERS | (BIG if has_big_ints() else FLOATS))
    number = draw(st.integers(*dtype.range) | st.sampled_from(dtype.range))
    return number if fits(number) else Big(number)


@st.composite
def shapes(draw: st.Draw, values: tuple[int, ...]) -> Argument:
    form = draw(st.sampled_from(["shape", "array", "list"]))
    return Numbers(values) if form == "shape" else Items(values, form)


@st.composite
def pairs(draw: st.Draw, spec: kinds.Map | kinds.Dict) -> Argument:
    """A map of what its spec says; its keys differ, also as Python compares them."""
    count = draw(st.sampled_from([0, 1, 2, 3, 5, 9]))
    as_text = isinstance(spec.key, kinds.String) or (spec.key is None and draw(st.booleans()))
    keys = [Text(b"key%d" % i, "heap") if as_text else i + 2 for i in range(count)]
    wanted = spec.value or kinds.Scalar("x", "int64")
    inside = tuple((key, draw(fitting(wanted, {}, 0))) for key in keys)
    return Pairs(inside, "map" if isinstance(spec, kinds.Map) else "dict")


def forms(data: bytes) -> st.Drawn[Any]:
    """The forms that a string can have."""
    fitting_forms = ["heap"] + (["small"] if len(data) <= 7 else [])
    return st.sampled_from(fitting_forms + (["raw"] if b"\0" not in data else []))


@st.composite
def strings(draw: st.Draw, choices: Sequence[str]) -> Text:
    data = draw(st.sampled_from(choices)).encode()
    return Text(data, draw(forms(data)))


@st.composite
def blobs(draw: st.Draw) -> Blob:
    data = draw(st.sampled_from([b"", b"abc", b"1234567", b"12345678", b"\0\xff" * 20]))
    short = ["small"] if len(data) <= 7 else []
    return Blob(data, draw(st.sampled_from(["array", "heap", *short])))


STRINGS = strings(["", "abc", "1234567", "12345678", "long " * 20, "ü", "a\0b"])
DTYPES = st.builds(Dtype, st.sampled_from([0x00012002, 0x00041002, 0x0001080A]))
DEVICES = st.builds(Dev, st.sampled_from([1, 2, 10]), st.integers(0, 3))
DEVICE_TEXTS = strings(["cpu", "cuda", "cuda:1", "rocm:0", "cuda:12", "cpu:0"])
POINTERS = st.builds(Opaque, st.sampled_from([1 << 12, 1 << 32, 0, (1 << 63) + 4096]))


def _pointer(spec: kinds.Pointer) -> st.Drawn[Argument]:
    null = [0, None] if spec.nullable else []
    return POINTERS.filter(lambda p: p.address or spec.nullable) | st.sampled_from([4096, *null])


_SIMPLE: dict[type, Callable[[Any], st.Drawn[Argument]]] = {
    kinds.Pointer: _pointer,
    kinds.Stream: lambda _: POINTERS | st.sampled_from([None, 0, 1, 2, 1 << 40]),
    kinds.String: lambda _: STRINGS,
    kinds.Bytes: lambda _: blobs(),
    kinds.DataType: lambda _: DTYPES | strings(list(DTYPE_NAMES)),
    kinds.Device: lambda _: DEVICES | DEVICE_TEXTS,
    kinds.NoneValue: lambda _: st.none(),
    kinds.Function: lambda _: st.just(Handle("ffi.Function")),
    kinds.Module: lambda _: st.just(Handle("ffi.Module")),
    kinds.Object: lambda spec: st.sampled_from(
        [Handle(key) for key in (BASE, DERIVED, "ffi.Function")]
    ),
    kinds.AnyValue: lambda _: JUNK,
}

JUNK: st.Drawn[Argument] = st.one_of(
    st.sampled_from([None, True, 0, 1, 3, -1, 1.5, Opaque(64), NullView(), Dtype(0x00012002)]),
    st.sampled_from([Dev(1, 0), Dev(2, 1), Big(1 << 63), Big(-(1 << 80)), Text(b"abc", "small")]),
    st.sampled_from([Text(b"abc", "raw"), Text(b"abc", "heap"), Blob(b"abc", "small")]),
    st.sampled_from([Blob(b"abc", "array"), Blob(b"abc", "heap"), Numbers((2, 3)), Numbers(())]),
    st.sampled_from([Items(()), Items((2, 3), "list"), Items((1, None, 2.5)), Pairs(((1, 2),))]),
    st.sampled_from([Pairs(((1, 2),), "dict"), Handle(BASE), Handle(DERIVED), Handle(OTHER)]),
    st.sampled_from([Handle("ffi.Function"), Handle("ffi.Module"), Handle("ffi.Error")]),
    st.sampled_from([Handle("ffi.OpaquePyObject"), View((2,), (1,)), View((), None, owned=True)]),
    st.just(Moved(View((2,), (1,), owned=True))),
)


@st.composite
def wrong(draw: st.Draw, argument: Argument) -> Argument:
    """An argument that differs in one place."""
    if chance(draw, 8):
        return draw(JUNK)
    match argument:
        case View():
            return draw(_wrong_view(argument))
        case bool() | int():
            return draw(NUMBERS | BIG)
        case Big():
            return draw(BIG)
        case float():
            return draw(FLOATS)
        case Numbers(values):
            return Numbers(draw(_spoilt(values, ODD | NUMBERS)))
        case Items(items, form):
            return draw(_wrong_items(items, form))
        case Text():
            return draw(STRINGS | strings(["gpu", "cuda:", "cuda:x", "cuda:-1", "float33x"]))
        case Opaque():
            return Opaque(draw(st.sampled_from([0, 1, 2, 4097, 4096])))
        case Pairs(inside, form) if inside:
            other = draw(st.sampled_from([None, 2.5, 3, Text(b"abc", "heap")]))
            return Pairs((*inside[:-1], (inside[-1][0], other)), form)
    return draw(JUNK)


@st.composite
def _spoilt(draw: st.Draw, inside: tuple[Any, ...], others: st.Drawn[Any]) -> tuple[Any, ...]:
    """One element changed, the last gone, or one more."""
    change = draw(st.integers(0, 5))
    if not inside or change == 5:
        return (*inside, draw(others))
    if change == 4:
        return inside[:-1]
    place = draw(st.integers(0, len(inside) - 1))
    return (*inside[:place], draw(others), *inside[place + 1 :])


@st.composite
def _wrong_items(draw: st.Draw, items: tuple[Argument, ...], form: Any) -> Argument:
    choice = draw(st.integers(0, 5))
    if choice == 5 or not items:
        return Items(items, "list" if form == "array" else "array")
    if choice == 4:
        return Items(draw(_spoilt(items, JUNK)), form)
    place = draw(st.integers(0, len(items) - 1))
    return Items((*items[:place], draw(wrong(items[place])), *items[place + 1 :]), form)


@st.composite
def _wrong_view(draw: st.Draw, view: View) -> View:
    change = draw(st.sampled_from(["shape"] * 3 + ["strides"] * 2 + ["data"] * 2 + [*_CHANGES]))
    if change == "shape":
        shape = draw(_spoilt(view.shape, ODD))
        known = view.strides if view.strides and len(view.strides) == len(shape) else compact(shape)
        strides = known if all(map(fits, known)) and draw(st.booleans()) else None
        return replace(view, shape=shape, strides=strides)
    if change == "strides":
        usable = view.strides if view.strides is not None else ()
        strides = tuple(draw(ODD) if chance(draw, 2) else stride for stride in usable)
        return replace(view, strides=strides if view.strides is not None else None)
    return replace(view, **{change: draw(_CHANGES[change])})


_CHANGES: dict[str, st.Drawn[Any]] = {
    "data": st.sampled_from([0, 1 << 12, 4097, 4100, (1 << 64) - 16]),
    "byte_offset": st.sampled_from([0, 1, 4, 16, (1 << 64) - 4096]),
    "dtype": st.sampled_from([0x00010801, 0x00010800, 0x00042002, 0x00020411, 0x00010411, 0]),
    "device": st.sampled_from(
        [(code, index) for code in (1, 2, 3, 10, 11, 13) for index in (0, 1)] + [(1, 3), (18, 2)]
    ),
    "owned": st.booleans(),
    "strides": st.none(),
}
