"""The hot path of all kinds: one handler for each kind, and the items of compound parameters.

Arguments are checked from left to right.  Optionals and unions come last, because by then the
symbols that they share with other arguments are known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, NoReturn

from typing_extensions import Never, assert_never

from ferrule.compiler.sizes import Sizes
from ferrule.compiler.wrapper.handles import (
    accept_address,
    accept_any,
    accept_bits,
    accept_elements,
    accept_handle,
    accept_registered,
    accept_shape,
    accept_text,
    open_sequence,
)
from ferrule.compiler.wrapper.hot import Hot, Unfit
from ferrule.compiler.wrapper.items import Item, Level, is_one_of
from ferrule.compiler.wrapper.leaves import leaves_of
from ferrule.compiler.wrapper.scalars import accept_constant, accept_none, accept_scalar
from ferrule.compiler.wrapper.tensors import accept_tensor
from ferrule.runtime.abi import TypeIndex
from ferrule.runtime.llvm.layouts import ANY
from ferrule.runtime.llvm.writer import Block, Value, i32, i64
from ferrule.specs import Param, Signature, params
from ferrule.specs.binding import ACTUAL

LATER: Final = "what several arguments decide"


def accept_arguments(hot: Hot, signature: Signature, args: Value) -> None:
    """Check the arguments of a call.  Raises Unfit if the hot path has no code for this
    signature."""
    level = Level()
    for position, param in enumerate(signature.arguments):
        hot.param = param.name
        hot.about("kind and value")
        _accept(hot, level, Item(param, args, ANY.size * position, hot.slots.first(param)))
    hot.param = ""
    hot.about(LATER)
    _solve(hot, level, signature)
    _finish(hot, level)
    hot.default_symbols()


def _solve(hot: Hot, level: Level, signature: Signature) -> None:
    """Bind the symbols that occur only inside expressions."""
    for binding in signature.bindings:
        if binding.symbol in hot.known or binding.solution == ACTUAL:
            continue
        place = binding.places[0]
        actual = level.sizes[id(place.param), place.axis]()
        symbols = {**hot.known, ACTUAL: actual}
        sizes = Sizes(hot.writer, symbols, dict(hot.sizes.ranges), hot.refuse)
        hot.bind([(binding.symbol, sizes.lower(binding.solution).value)], signed=False)


def _finish(hot: Hot, level: Level) -> None:
    level.finish()
    hot.settle()
    for item, spec in level.branches:
        match spec:
            case params.Optional(item=inner):
                _accept_optional(hot, item, inner)
            case params.Union(members=members):
                _accept_union(hot, item, members)
            case _:
                assert_never(spec)


def _accept(hot: Hot, level: Level, item: Item) -> None:
    """Check one item; optionals and unions are postponed."""
    match item.param:
        case params.Tensor() as spec:
            accept_tensor(hot, level, item, spec)
        case params.Scalar(dtype=dtype):
            accept_scalar(hot, item, dtype)
        case params.Shape() as spec:
            accept_shape(hot, level, item, spec)
        case params.Pointer() | params.Stream() as spec:
            accept_address(hot, item, spec)
        case params.Tuple(items=inner):
            _accept_tuple(hot, level, item, inner)
        case params.Optional() | params.Union() as spec:
            level.branches.append((item, spec))
        case params.Constant(value=value):
            accept_constant(hot, item, value)
        case params.Elements(item=element):
            (index,) = item.param.traits.stored
            accept_elements(hot, item, TypeIndex(index), element)
        case params.Pairs(key=key, value=value) if (key, value) != (None, None):
            raise Unfit
        case params.Object(type_key=type_key):
            accept_registered(hot, item, type_key)
        case params.EnvStream():
            raise ValueError(f"the env stream {item.param.name} is no argument")
        case (
            params.String()
            | params.Bytes()
            | params.DataType()
            | params.Device()
            | params.NoneValue()
            | params.Function()
            | params.Module()
            | params.AnyValue()
            | params.Pairs()
        ):
            _accept_plain(hot, item, item.param.traits)
        case _:
            _refuse_kind(item.param)


def _refuse_kind(param: Never) -> NoReturn:
    """Raises TypeError for a kind without a case.  Its traits may not say which values it takes:
    none passes by an oversight."""
    raise TypeError(f"compiler/wrapper/accept.py has no case for the kind {type(param).__name__}")


def _accept_plain(hot: Hot, item: Item, traits: params.Traits) -> None:
    """Check an item of a kind that its traits describe completely."""
    indices = map(TypeIndex, traits.stored)
    match traits.payload:
        case params.Payload.NOTHING:
            accept_none(hot, item)
        case params.Payload.BITS:
            accept_bits(hot, item, *indices)
        case params.Payload.BYTES:
            accept_text(hot, item, *indices)
        case params.Payload.OBJECT:
            accept_handle(hot, item, *indices)
        case params.Payload.ANY:
            accept_any(hot, item)
        case params.Payload.ADDRESS:
            raise ValueError(f"{item.param.name}: an address is checked with its spec")
        case _:
            assert_never(traits.payload)


def _accept_tuple(hot: Hot, level: Level, item: Item, inner: Sequence[Param]) -> None:
    data, slot = open_sequence(hot, item, len(inner)), item.slot
    for position, param in enumerate(inner):
        _accept(hot, level, Item(param, data, ANY.size * position, slot))
        slot += len(leaves_of(param))


# ---- items that can be absent ----


def _accept_optional(hot: Hot, item: Item, inner: Param) -> None:
    writer = hot.writer
    _clear(hot, item)
    is_none = writer.icmp("eq", item.index(hot), i32(TypeIndex.NONE))
    present = writer.block("present")
    with writer.apart() as last:
        behind = writer.block("behind")
    writer.cond_branch(is_none, behind, present)
    writer.at(present)
    with _branch(hot, behind):
        item.keep(hot, i64(1))
        _accept_inside(hot, replace(item, param=inner, slot=item.slot + 1))
    writer.arrange(last)
    writer.at(behind)


def _accept_union(hot: Hot, item: Item, members: Sequence[Param]) -> None:
    """Take the first member that accepts values of this type index; if none does, go to the
    checker."""
    writer = hot.writer
    _clear(hot, item)
    index = item.index(hot)
    with writer.apart() as last:
        behind = writer.block("behind")
    slot, taken = item.slot + 1, frozenset[int]()
    for position, member in enumerate(members):
        own = params.type_indices(member) - taken
        chosen, other = writer.block("member"), writer.block("other")
        writer.cond_branch(is_one_of(writer, index, own), chosen, other)
        writer.at(chosen)
        with _branch(hot, behind):
            item.keep(hot, i64(position))
            _accept_inside(hot, replace(item, param=member, slot=slot))
        writer.at(other)
        slot, taken = slot + len(leaves_of(member)), taken | own
    writer.branch(hot.slow)
    writer.arrange(last)
    writer.at(behind)


def _accept_inside(hot: Hot, item: Item) -> None:
    level = Level()
    _accept(hot, level, item)
    _finish(hot, level)


@contextmanager
def _branch(hot: Hot, behind: Block) -> Iterator[None]:
    """A branch that ends in `behind`, or goes to the checker."""
    with hot.branch():
        try:
            yield
        except Unfit:
            hot.writer.branch(hot.slow)
        else:
            hot.writer.branch(behind)


def _clear(hot: Hot, item: Item) -> None:
    """Set the leaves of an absent item to zero."""
    for i in range(len(leaves_of(item.param))):
        hot.leaf(item.slot + i, i64(0))
