"""Random signatures and random calls against the oracle: outcome, class of the error, its place."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wrapper_calls import Argument, NullView, Raw, Refused, View, Wrapped, compact
from wrapper_oracle import Accepted, Wrong, judge

from ferrule.specs import (
    Boolean,
    Dim,
    DType,
    Float16,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Param,
    Scalar,
    Signature,
    Sym,
    Tensor,
    Uint8,
    Uint32,
    Uint64,
    ceil_div,
    compact_strides,
    evaluate,
    maximum,
    minimum,
    sym_int,
)

CALLS_PER_SIGNATURE = 12
DTYPES: Sequence[DType] = (Float32, Float16, Int8, Uint8, Int64, Boolean)
SCALARS: Sequence[DType] = (
    Boolean, Int8, Int16, Int32, Int64, Uint8, Uint32, Uint64, Float32, Float64,
)  # fmt: skip
SIZES = st.sampled_from([0, 1, 2, 3, 4, 7, 8, 16, -1, 1 << 31, (1 << 31) - 1, 1 << 40, 1 << 62])
USUAL = st.sampled_from([1, 2, 3, 4, 8, 16])


@st.composite
def symbols(draw: st.DrawFn) -> list[Sym]:
    return [
        sym_int(
            draw(st.sampled_from([32, 32, 64])),
            divisibility=draw(st.sampled_from([1, 1, 1, 2, 3, 8])),
            symbol=name,
        )
        for name in "nms"
    ]


@st.composite
def dims(draw: st.DrawFn, names: Sequence[Sym], bare: Sequence[Sym], stride: bool) -> Dim:
    """A size; symbols inside expressions are of those that stand bare in an earlier size."""
    choice = draw(st.integers(0, 7))
    if choice <= 3 or not bare:
        if choice <= 2 or stride:
            return draw(st.sampled_from(names))
        return draw(st.sampled_from([0, 1, 2, 4]))
    left, right = draw(st.sampled_from(bare)), draw(st.sampled_from([*bare, 2, 3]))
    expressions = [
        lambda: left * 2 + 1,
        lambda: left * right,
        lambda: left // right,
        lambda: left % right,
        lambda: left - 2,
        lambda: ceil_div(left, right),
        lambda: minimum(left, right),
        lambda: maximum(left, right) * left,
    ]
    return draw(st.sampled_from(expressions))()


@st.composite
def tensors(draw: st.DrawFn, name: str, names: Sequence[Sym], bare: list[Sym]) -> Tensor:
    rank = draw(st.integers(0, 3))
    shape: list[Dim] = []
    for _ in range(rank):
        shape.append(draw(dims(names, bare, stride=False)))
        bare += [dim for dim in shape[-1:] if isinstance(dim, Sym) and dim not in bare]
    order = draw(st.permutations(range(rank)))
    strides: Sequence[Dim] = compact_strides(shape, order)
    if draw(st.integers(0, 3)) == 0:
        strides = [draw(dims(names, bare, stride=True)) for _ in range(rank)]
    dtype = draw(st.sampled_from(DTYPES))
    align = draw(st.sampled_from([None, None, 1, 16]))
    return Tensor(name, shape, dtype, strides=strides, device="cpu", align=align)


@st.composite
def signatures(draw: st.DrawFn) -> Signature:
    names, bare = draw(symbols()), []
    params: list[Param] = []
    for name in "abcd"[: draw(st.integers(0, 4))]:
        if draw(st.integers(0, 3)):
            params.append(draw(tensors(name, names, bare)))
        else:
            params.append(Scalar(name, draw(st.sampled_from(SCALARS))))
    return Signature("f", params)


@st.composite
def views(draw: st.DrawFn, spec: Tensor, values: dict[Sym, int]) -> View:
    """A tensor that mostly fits its spec for these values of the symbols."""
    shape = tuple(_value(dim, values) for dim in spec.shape)
    strides: tuple[int, ...] | None = tuple(_value(dim, values) for dim in spec.strides)
    shape = _spoilt(draw, shape, SIZES)
    strides = _spoilt(draw, strides, SIZES)
    if draw(st.integers(0, 5)) == 0:
        strides = None if draw(st.booleans()) else _fits(compact(shape))
    odd = draw(st.integers(0, 19))
    return View(
        shape[: None if odd != 1 else -1],
        strides,
        dtype=0x00010801 if odd == 2 else spec.dtype.dlpack,
        device=(2, 1) if odd == 3 else (1, 0),
        data=draw(st.sampled_from([4096, 4096, 4096, 4096, 0, 4100, 4097])),
        byte_offset=draw(st.sampled_from([0, 0, 0, 16, 4, 1])),
        owned=draw(st.booleans()),
    )


def _value(dim: Dim, values: dict[Sym, int]) -> int:
    try:
        return evaluate(dim, values)
    except (OverflowError, ZeroDivisionError):
        return 3


def _fits(numbers: tuple[int, ...]) -> tuple[int, ...]:
    return tuple((number + (1 << 63)) % (1 << 64) - (1 << 63) for number in numbers)


def _spoilt(
    draw: st.DrawFn, numbers: tuple[int, ...], others: st.SearchStrategy[int]
) -> tuple[int, ...]:
    if numbers and draw(st.integers(0, 4)) == 0:
        place = draw(st.integers(0, len(numbers) - 1))
        return (*numbers[:place], draw(others), *numbers[place + 1 :])
    return numbers


def scalars(dtype: DType) -> st.SearchStrategy[Argument]:
    small = st.sampled_from([0, 1, 2, 127, 128, 255, 256, -1, -129, 1 << 31, 1 << 40, -(1 << 63)])
    number = st.one_of(small, st.integers(-(1 << 63), (1 << 63) - 1), st.booleans())
    if dtype.kind == "float":
        return st.one_of(number, st.floats(allow_nan=False))
    return number


JUNK = st.sampled_from([None, 1.5, Raw(65), Raw(71), Raw(74), NullView(), True, View((2,))])


@st.composite
def calls(draw: st.DrawFn, signature: Signature) -> list[Argument]:
    values = {}
    for symbol in signature.symbols:
        usual = draw(USUAL) * symbol.divisibility
        values[symbol] = draw(SIZES) if draw(st.integers(0, 7)) == 0 else usual
    arguments: list[Argument] = []
    for param in signature.params:
        if draw(st.integers(0, 24)) == 0:
            arguments.append(draw(JUNK))
        elif isinstance(param, Tensor):
            arguments.append(draw(views(param, values)))
        else:
            arguments.append(draw(scalars(param.dtype)))
    return arguments[: -1 if draw(st.integers(0, 40)) == 0 else None]


def outcome(wrapped: Wrapped, arguments: Sequence[Argument]) -> Accepted | Wrong:
    try:
        return Accepted(wrapped(*arguments))
    except Refused as error:
        assert not wrapped.ran
        return Wrong(error.kind, error.message)


def agree(got: Accepted | Wrong, wanted: Accepted | Wrong) -> bool:
    if isinstance(got, Wrong) and isinstance(wanted, Wrong):
        return got.kind == wanted.kind and got.opening.startswith(wanted.opening)
    return got == wanted


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_wrappers_do_what_the_specs_say(data: st.DataObject) -> None:
    signature = data.draw(signatures())
    wrapped = Wrapped(*signature.params)
    for _ in range(CALLS_PER_SIGNATURE):
        arguments = data.draw(calls(signature))
        got, wanted = outcome(wrapped, arguments), judge(signature, arguments)
        assert agree(got, wanted), f"{signature.params}\n{arguments}\n{got}\n{wanted}"


def test_not_a_number_arrives() -> None:
    wrapped = Wrapped(Scalar("x", Float32), Scalar("y", Float64))
    assert all(map(math.isnan, wrapped(math.nan, math.nan)))
    assert wrapped(1e300, 0.1) == (math.inf, 0.1)
    assert wrapped(True, (1 << 62) + 1) == (1.0, float((1 << 62) + 1))
