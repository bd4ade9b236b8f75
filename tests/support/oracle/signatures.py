"""Random signatures over all kinds of parameters, each of which some call fits.

A symbol inside an expression stands bare in the same tensor, or in a parameter that is always
there (one is added where none has it), or is left to be solved for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

import draws as st

from ferrule.specs import (
    ALL_DTYPES,
    Boolean,
    Condition,
    Dim,
    DType,
    Float16,
    Float32,
    Int8,
    Int64,
    Requirement,
    Signature,
    Sym,
    Uint8,
    ceil_div,
    compact_strides,
    divisible,
    equal,
    maximum,
    minimum,
    require,
    sym_int,
)
from ferrule.specs import params as kinds
from ferrule.specs.conditions import compare
from ferrule.specs.params import Param
from oracle.arguments import BASE, DERIVED, INT64, UNREGISTERED
from oracle.loose import loose_symbols, solvable

TENSOR_DTYPES: Sequence[DType] = (Float32, Float32, Float16, Int8, Uint8, Int64, Boolean)
SCALAR_DTYPES = tuple(
    dtype for dtype in ALL_DTYPES if dtype.bits >= (16 if dtype.kind == "float" else 8)
    and dtype.kind != "complex"
)  # fmt: skip
ALL_KINDS: frozenset[type] = frozenset(get_args(kinds.Param))
GPU = ("cuda", "cuda", "rocm")
COUNTS = (1, 0, 1, 2, 2, 3, 3, 4)
ODD_NAMES = ("f", "where", "Tensor", "größe", "int32", "Default", "_", "n0")


@dataclass
class Scope:
    """What the parameters of one signature are drawn from.

    `devices` are those of its tensors; `whole` asks for what only the text of a signature shows.
    """

    kinds: frozenset[type]
    symbols: Sequence[Sym]
    even: Sym
    devices: Sequence[str | None]
    whole: bool = False
    depth: int = 0
    local: list[Sym] = field(default_factory=list)


def chance(draw: st.Draw, one_in: int) -> bool:
    """True once in so many draws; shrinks to False."""
    return draw(st.integers(0, one_in - 1)) == one_in - 1


@st.composite
def signatures(
    draw: st.Draw, allowed: frozenset[type] = ALL_KINDS, whole: bool = False
) -> Signature:
    """A signature of parameters of these kinds; `whole`: with all that its text can show."""
    scope = draw(_scopes(allowed, whole))
    names = draw(st.permutations(ODD_NAMES)) if whole and draw(st.booleans()) else "abcd"
    count = draw(st.sampled_from(COUNTS))
    params = [draw(outer_params(scope, name)) for name in names[:count]]
    loose = loose_symbols(params)
    if loose and not solvable(params, loose):
        params.append(_binder(scope, loose))
    if kinds.EnvStream in allowed and chance(draw, 5):
        device = draw(st.sampled_from([*GPU[1:], "cpu"]))
        place = draw(st.integers(0, len(params)))
        index = draw(st.sampled_from([None, 0, 1]))
        params.insert(place, kinds.EnvStream("stream", device, index))
    called = draw(st.sampled_from(ODD_NAMES)) if whole else "f"
    known = _comparable(Signature(called, tuple(params)))
    requires = []
    while known and chance(draw, 3):
        requires.append(draw(requirements(known)))
    return Signature(called, tuple(params), requires=tuple(requires))


def _comparable(signature: Signature) -> Sequence[Sym]:
    """The sizes and integers of every call, of which requirements are made."""
    sizes = [b.symbol for b in signature.bindings if not all(p.optional for p in b.places)]
    integers = [
        param.value
        for param in signature.params
        if isinstance(param, kinds.Scalar) and param.dtype.kind != "float"
    ]
    return [*sizes, *integers]


@st.composite
def requirements(draw: st.Draw, known: Sequence[Sym]) -> Requirement:
    """A requirement that many calls keep."""
    left, right = draw(st.sampled_from(known)), draw(st.sampled_from([*known, 2, 3]))
    condition = draw(st.sampled_from(_CONDITIONS))(left, right)
    other = draw(st.sampled_from(_CONDITIONS))(right, left) if not isinstance(right, int) else None
    if other is not None and draw(st.booleans()):
        condition = condition & ~other if draw(st.booleans()) else condition | other
    return require(condition, draw(st.sampled_from([None, "no, because", " requires n where '"])))


_CONDITIONS: Sequence[Callable[[Sym, Dim], Condition]] = (
    lambda left, right: left <= 4,
    lambda left, right: left >= 2,
    lambda left, right: left * right < 1 << 40,
    lambda left, right: left >= right - 100,
    lambda left, right: divisible(left, 2),
    lambda left, right: ~equal(left, right),
    lambda left, right: left % right > -8,
    lambda left, right: compare("ne", left // right, 7),
)


@st.composite
def _scopes(draw: st.Draw, allowed: frozenset[type], whole: bool) -> Scope:
    symbols = [
        sym_int(
            draw(st.sampled_from([32, 32, 64])),
            divisibility=draw(st.sampled_from([1, 1, 1, 2, 3, 8])),
            symbol=name if draw(st.booleans()) else None,
            min=draw(st.sampled_from([None, None, None, None, 0, 1, 3, -2])),
            max=draw(st.sampled_from([None, None, None, None, 16, 24, 100])),
        )
        for name in "nmks"
    ]
    even = sym_int(64, divisibility=draw(st.sampled_from([2, 4])))
    on_gpu = draw(st.integers(0, 3)) == 3
    devices: list[str | None] = ["cpu", *GPU] if on_gpu else ["cpu"]
    return Scope(allowed, symbols, even, [None, *devices] if whole else devices, whole)


def _binder(scope: Scope, loose: Sequence[Sym]) -> Param:
    if kinds.Tensor in scope.kinds:
        return kinds.Tensor("z", tuple(loose), Float32, device="cpu")
    return kinds.Shape("z", tuple(loose))


@st.composite
def dims(draw: st.Draw, scope: Scope, signed: bool = False) -> Dim:
    """A size: mostly a symbol, else a number or an expression."""
    choice = draw(st.integers(0, 9))
    if choice <= 4:
        return draw(st.sampled_from(scope.symbols))
    if choice <= 6:
        return draw(st.sampled_from([2, 1, 0, 4, -3] if signed else [2, 1, 0, 4]))
    left = draw(st.sampled_from([*scope.local, *scope.symbols]))
    right = draw(st.sampled_from([2, 3, *scope.symbols]))
    return draw(st.sampled_from(_EXPRESSIONS))(left, right)


_EXPRESSIONS: Sequence[Callable[[Sym, Dim], Dim]] = (
    lambda left, right: left * 2,
    lambda left, right: left * 2 + 1,
    lambda left, right: left + right,
    lambda left, right: 10 - left,
    lambda left, right: (left - 1) * 3 - 2,
    lambda left, right: left * right,
    lambda left, right: left // right,
    lambda left, right: left % right,
    lambda left, right: ceil_div(left, right),
    lambda left, right: minimum(left, right),
    lambda left, right: maximum(left, right) * left,
)


@st.composite
def tensors(draw: st.Draw, scope: Scope, name: str) -> Param:
    """A tensor; its strides are compact, or anything."""
    if chance(draw, 12):
        return draw(packed_tensors(scope, name))
    scope.local.clear()
    shape: list[Dim] = []
    for _ in range(draw(st.sampled_from([1, 0, 1, 2, 2, 3]))):
        shape.append(draw(dims(scope)))
        scope.local += [dim for dim in shape[-1:] if isinstance(dim, Sym)]
    strides: Sequence[Dim] = compact_strides(shape, draw(st.permutations(range(len(shape)))))
    if chance(draw, 4):
        strides = [draw(dims(scope, signed=True)) for _ in shape]
    dtype = draw(st.sampled_from(ALL_DTYPES if scope.whole else TENSOR_DTYPES))
    exact = draw(st.sampled_from([(), (), (), (0,), (1,), (0, 1)]))
    exact = [axis for axis in exact if axis < len(shape)]
    details = {**_details(draw, scope), "exact_strides": exact}
    return kinds.Tensor(name, shape, dtype, strides=strides, **details)


def _details(draw: st.Draw, scope: Scope) -> dict[str, Any]:
    return {
        "device": draw(st.sampled_from(scope.devices)),
        "device_id": draw(st.sampled_from([None] * 8 + [0, 1])),
        "align": draw(st.sampled_from([None, None, 1, 16])),
        "read_only": draw(st.booleans()),
        "owning": chance(draw, 8),
    }


@st.composite
def packed_tensors(draw: st.Draw, scope: Scope, name: str) -> Param:
    """A tensor of 4-bit floats, two in a byte, along its last dim or its first."""
    choices: list[Dim] = [scope.even, 4, scope.even * 2]
    inner = draw(st.sampled_from(choices))
    outer = [draw(dims(scope)) for _ in range(draw(st.integers(0, 2)))]
    if chance(draw, 3):
        shape, order = (inner, *outer), range(len(outer) + 1)
        return kinds.Tensor(
            name,
            shape,
            kinds.PACKED_NAME,
            strides=compact_strides(shape, order),
            **_details(draw, scope),
        )
    return kinds.Tensor(name, (*outer, inner), kinds.PACKED_NAME, **_details(draw, scope))


@st.composite
def params_of(draw: st.Draw, scope: Scope, name: str) -> Param:
    """A parameter of any of the kinds of a scope, nested at most two deep."""
    makers = [
        make
        for kind, (make, weight) in _MAKERS.items()
        if kind in scope.kinds and not (scope.depth >= 2 and kind in _NESTING)
        for _ in range(weight)
    ]
    scope.depth += 1
    try:
        return draw(draw(st.sampled_from(makers))(scope, name))
    finally:
        scope.depth -= 1


@st.composite
def outer_params(draw: st.Draw, scope: Scope, name: str) -> Param:
    """A parameter of a function or a field of a named tuple: one that can have a default."""
    param = draw(params_of(scope, name))
    if not scope.whole or isinstance(param, kinds.Tensor) or not chance(draw, 3):
        return param
    match param:
        case kinds.Scalar(dtype=dtype):
            default = draw(st.floats() if dtype.kind == "float" else st.sampled_from([0, 1]))
            return kinds.Scalar(name, dtype, default)
        case kinds.Shape(dims=dims, kind=kind):
            return kinds.Shape(name, dims, kind, tuple(draw(st.integers(*INT64)) for _ in dims))
        case kinds.Constant(value=value):
            return dataclasses.replace(param, default=value)
    return dataclasses.replace(param, default=draw(LITERALS))


@st.composite
def scalars(draw: st.Draw, scope: Scope, name: str) -> Param:
    return kinds.Scalar(name, draw(st.sampled_from(SCALAR_DTYPES)))


@st.composite
def shapes(draw: st.Draw, scope: Scope, name: str) -> Param:
    kind = draw(st.sampled_from(get_args(kinds.TupleKind)))
    scope.local.clear()
    signed = kind in ("Stride", "Coord", "IntTuple")
    inside = [draw(dims(scope, signed)) for _ in range(draw(st.integers(0, 3)))]
    return kinds.Shape(name, inside, kind)


@st.composite
def pointers(draw: st.Draw, scope: Scope, name: str) -> Param:
    return kinds.Pointer(
        name,
        draw(st.sampled_from([None, Float32, Int8])),
        draw(st.sampled_from(list(kinds.AddressSpace))),
        draw(st.sampled_from([1, 1, 4, 256])),
        draw(st.booleans()),
    )


@st.composite
def tuples(draw: st.Draw, scope: Scope, name: str) -> Param:
    fields = scope.whole and draw(st.booleans())
    names, make = ("xyz", outer_params) if fields else ("012", params_of)
    items = tuple(draw(make(scope, item)) for item in names[: draw(st.integers(0, 3))])
    return kinds.Tuple(name, items, fields)


@st.composite
def optionals(draw: st.Draw, scope: Scope, name: str) -> Param:
    item = draw(params_of(scope, name).filter(lambda p: not isinstance(p, _NEVER_OPTIONAL)))
    return kinds.Optional(name, item)


_NEVER_OPTIONAL = (kinds.Optional, kinds.NoneValue)


@st.composite
def unions(draw: st.Draw, scope: Scope, name: str) -> Param:
    """A union of members that can be told apart; where there are none, a member."""
    members: list[Param] = []
    for _ in range(draw(st.integers(2, 4))):
        member = draw(params_of(scope, name))
        if _distinct(name, [*members, member]):
            members.append(member)
    if len(members) < 2:
        return members[0] if members else draw(scalars(scope, name))
    return kinds.Union(name, tuple(members))


def _distinct(name: str, members: Sequence[Param]) -> bool:
    if isinstance(members[-1], (kinds.Optional, kinds.Union, kinds.AnyValue)):
        return False
    try:
        kinds.Union(name, tuple(members) if len(members) > 1 else (*members, kinds.Bytes(name)))
    except ValueError:
        return len(members) == 1 and isinstance(members[0], kinds.Bytes)
    return True


CONSTANTS = st.sampled_from(
    [True, False, 0, 1, 2, -7, 1 << 40, 0.0, -0.0, 1.5, float("nan"), float("inf"), "", "abc", "ü"]
)
TEXTS = st.sampled_from(["", "a", 'it\'s "so"', "f() where n: int32", " where ", "\n\t\\", "ü€"])


PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS | st.binary()
LITERALS = st.recursive(
    PLAIN,
    lambda inside: (
        st.lists(inside, max_size=2).map(tuple) | st.dictionaries(PLAIN, inside, max_size=2)
    ),
    depth=2,
)


@st.composite
def constants(draw: st.Draw, scope: Scope, name: str) -> Param:
    if scope.whole:
        value = draw(CONSTANTS | TEXTS | st.integers(-(1 << 63), (1 << 63) - 1) | st.floats())
        return kinds.Constant(name, value)
    return kinds.Constant(name, draw(CONSTANTS))


@st.composite
def objects(draw: st.Draw, scope: Scope, name: str) -> Param:
    keys = [BASE, DERIVED, "ffi.Object", "ffi.Function", UNREGISTERED]
    return kinds.Object(name, draw(st.sampled_from(keys)))


@st.composite
def elements(draw: st.Draw, scope: Scope, name: str) -> Param | None:
    """What the elements of a container are, or None."""
    simple = [kind for kind in _SIMPLE if kind in scope.kinds]
    containers = [kinds.Array, kinds.List] if scope.depth < 2 else []
    kind = draw(
        st.sampled_from([None, None, *simple, *(k for k in containers if k in scope.kinds)])
    )
    if kind is None:
        return None
    if kind is kinds.Tensor:
        return kinds.Tensor(name, draw(st.sampled_from([(), (2,), (0, 3)])), Float32, device="cpu")
    scope.depth += 1
    try:
        return draw(_MAKERS[kind][0](scope, name))
    finally:
        scope.depth -= 1


_SIMPLE = (
    kinds.Scalar,
    kinds.String,
    kinds.Bytes,
    kinds.DataType,
    kinds.Device,
    kinds.NoneValue,
    kinds.Constant,
    kinds.Function,
    kinds.Object,
    kinds.Module,
    kinds.Tensor,
)


def _of_elements(kind: Callable[..., Param]) -> Callable[..., st.Drawn[Param]]:
    return lambda scope, name: st.builds(kind, st.just(name), elements(scope, name))


@st.composite
def map_elements(draw: st.Draw, scope: Scope, name: str, *, key: bool) -> Param | None:
    """Keys and values: what Python's own values are taken as."""
    usual: list[Param | None] = [None, kinds.Scalar(name, Int64), kinds.String(name)]
    if not key:
        usual += [kinds.Scalar(name, Float32), kinds.NoneValue(name)]
    known = [kind for kind in usual if kind is None or type(kind) in scope.kinds]
    return draw(st.sampled_from(known))


def _of_pairs(kind: Callable[..., Param]) -> Callable[..., st.Drawn[Param]]:
    return lambda scope, name: st.builds(
        kind,
        st.just(name),
        map_elements(scope, name, key=True),
        map_elements(scope, name, key=False),
    )


def _named(kind: Callable[[str], Param]) -> Callable[..., st.Drawn[Param]]:
    return lambda scope, name: st.just(kind(name))


_NESTING = (kinds.Tuple, kinds.Optional, kinds.Union)
_MAKERS: dict[type, tuple[Callable[..., st.Drawn[Param]], int]] = {
    kinds.Tensor: (tensors, 12),
    kinds.Scalar: (scalars, 4),
    kinds.Shape: (shapes, 4),
    kinds.Tuple: (tuples, 3),
    kinds.Optional: (optionals, 3),
    kinds.Union: (unions, 3),
    kinds.Pointer: (pointers, 2),
    kinds.Constant: (constants, 2),
    kinds.Object: (objects, 1),
    kinds.Array: (_of_elements(kinds.Array), 1),
    kinds.List: (_of_elements(kinds.List), 1),
    kinds.Map: (_of_pairs(kinds.Map), 1),
    kinds.Dict: (_of_pairs(kinds.Dict), 1),
    kinds.Stream: (_named(kinds.Stream), 1),
    kinds.String: (_named(kinds.String), 1),
    kinds.Bytes: (_named(kinds.Bytes), 1),
    kinds.DataType: (_named(kinds.DataType), 1),
    kinds.Device: (_named(kinds.Device), 1),
    kinds.NoneValue: (_named(kinds.NoneValue), 1),
    kinds.Function: (_named(kinds.Function), 1),
    kinds.Module: (_named(kinds.Module), 1),
    kinds.AnyValue: (_named(kinds.AnyValue), 1),
}
