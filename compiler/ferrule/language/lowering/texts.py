"""Strings, bytes, dtypes and devices that are known at the call: comparisons, length, truth.

Bytes are read with the IR's own loads and loops, so no target needs code for them.
"""

from __future__ import annotations

import ast
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType
from ferrule.language.lowering import devices, operators, views
from ferrule.language.lowering.context import Lowering
from ferrule.language.values import Handle, Number
from ferrule.specs import DEVICE_CODES, DType, Int32, Int64, Uint8, params
from ferrule.specs.dtypes import as_dtype

_NUMBER_BITS: Final = 32
"""How far the number of a device stands above its type."""

_WORDS: Final[dict[type[params.Param], str]] = {
    params.String: "a string",
    params.Bytes: "bytes",
    params.DataType: "a dtype",
    params.Device: "a device",
}


def is_text(value: Any) -> bool:
    """Whether this is a string or bytes that is known at the call."""
    return isinstance(value, Handle) and isinstance(value.param, (params.String, params.Bytes))


def compares(value: Any) -> bool:
    """Whether `==` has a meaning for this handle."""
    return isinstance(value, Handle) and type(value.param) in _WORDS


def compare(low: Lowering, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Any:
    """`==` and `!=`, where at least one side `compares`."""
    handle, other = (left, right) if compares(left) else (right, left)
    if not isinstance(op, (ast.Eq, ast.NotEq)):
        low.fail(
            node,
            f"{operators.describe(handle)} is compared with another operator",
            expected="== or !=",
        )
    if isinstance(other, (str, bytes)) and isinstance(handle.param, (params.String, params.Bytes)):
        other = constant(low, other)
    if isinstance(handle.param, params.Device):
        parts = device_parts(low, other, node) if isinstance(other, str) else None
        known = devices.known_equality(handle, other, parts)
        if known is not None:
            return known if isinstance(op, ast.Eq) else not known
    match handle.param:
        case params.String() | params.Bytes() if _same_kind(handle, other):
            equal = _same_bytes(low, handle.leaves, other.leaves)
        case params.DataType() if _same_kind(handle, other) or isinstance(other, (str, DType)):
            equal = _same_dtype(low, handle, other, node)
        case params.Device() if _same_kind(handle, other) or isinstance(other, str):
            equal = _same_device(low, handle, other, node)
        case _:
            low.fail(
                node,
                f"{operators.describe(handle)} is compared with {operators.describe(other)}",
                expected=f"{_WORDS[type(handle.param)]} on both sides",
            )
    return Number(low.builder.unary("not", equal)) if isinstance(op, ast.NotEq) else Number(equal)


def _same_kind(handle: Handle, other: Any) -> bool:
    return isinstance(other, Handle) and type(other.param) is type(handle.param)


def constant(low: Lowering, text: str | bytes) -> Handle:
    """A text that is known at compile time."""
    data = text.encode() if isinstance(text, str) else text
    address = ops.Value(HandleType("bytes"), "text")
    low.builder.append(ops.Text(address, data))
    param = params.String("text") if isinstance(text, str) else params.Bytes("text")
    return Handle(param, (address, low.builder.constant(Int64, len(data))), repr(text))


def _same_bytes(
    low: Lowering, left: tuple[ops.Value, ...], right: tuple[ops.Value, ...]
) -> ops.Value:
    """Whether two texts, address and length, are the same: as far as the first difference."""
    build = low.builder
    sizes = build.compare("eq", left[1], right[1])
    with build.region() as then:
        bytes_ = [views.pointer_to(low, side[0], Uint8, 1, "text").value for side in (left, right)]
        behind = _first_difference(low, bytes_[0], bytes_[1], left[1])
        equal = build.compare("eq", behind, left[1])
    with build.region() as otherwise:
        no = build.compare("ne", left[1], left[1])
    return build.if_(sizes, then.freeze(equal), otherwise.freeze(no), ("same",))[0]


def _first_difference(low: Lowering, a: ops.Value, b: ops.Value, size: ops.Value) -> ops.Value:
    """The position of the first byte that differs, Int64; the size where none does."""
    build = low.builder
    zero, at, result = build.constant(Int64, 0), ops.Value(Int64, "i"), ops.Value(Int64, "behind")
    with build.region() as test:
        more = build.compare("lt", at, size)
        with build.region() as inside:
            same = build.compare("eq", build.load(a, (at,)), build.load(b, (at,)))
        with build.region() as outside:
            no = build.compare("ne", at, at)
        (goes_on,) = build.if_(more, inside.freeze(same), outside.freeze(no), ("more",))
    with build.region() as body:
        following = build.binary("add", at, build.constant(Int64, 1))
    build.append(ops.While((result,), (zero,), (at,), test.freeze(goes_on), body.freeze(following)))
    return result


def _same_dtype(low: Lowering, handle: Handle, other: Any, node: ast.AST) -> ops.Value:
    if not isinstance(other, Handle):
        bits = operators.at_compile_time(low, node, lambda: as_dtype(other)).dlpack
        signed = bits - (1 << 32) if bits >= 1 << 31 else bits
        return low.builder.compare("eq", handle.leaves[0], low.builder.constant(Int32, signed))
    return low.builder.compare("eq", handle.leaves[0], other.leaves[0])


def _same_device(low: Lowering, handle: Handle, other: Any, node: ast.AST) -> ops.Value:
    """With "cuda" any device of this type is meant, with "cuda:1" that one."""
    build, value = low.builder, handle.leaves[0]
    if isinstance(other, Handle):
        return build.compare("eq", value, other.leaves[0])
    kind, number = device_parts(low, other, node)
    if number is not None:
        return build.compare("eq", value, build.constant(Int64, kind | number << _NUMBER_BITS))
    return build.compare("eq", build.cast(Int32, value), build.constant(Int32, kind))


def device_parts(low: Lowering, name: str, node: ast.AST) -> tuple[int, int | None]:
    """The type and the number of a device such as "cuda:1"; without a number None."""
    kind, colon, number = name.partition(":")
    if kind not in DEVICE_CODES or (colon and not (number.isascii() and number.isdecimal())):
        low.fail(
            node,
            f"{name!r} is no device",
            expected='one such as "cpu", "cuda" for any, or "cuda:1"; '
            f"types are {', '.join(DEVICE_CODES)}",
        )
    return DEVICE_CODES[kind], int(number) if colon else None


def length(low: Lowering, text: Handle) -> Number:
    """`len(text)`: bytes of bytes, characters of a string."""
    address, size = text.leaves
    if isinstance(text.param, params.Bytes):
        return Number(size)
    build = low.builder
    zero, one = build.constant(Int64, 0), build.constant(Int64, 1)
    data = views.pointer_to(low, address, Uint8, 1, "text").value
    at, count, result = (ops.Value(Int64, hint) for hint in ("i", "count", "length"))
    with build.region() as body:
        top = build.binary("and", build.load(data, (at,)), build.constant(Uint8, 0xC0))
        begins = build.compare("ne", top, build.constant(Uint8, 0x80))
        following = build.binary("add", count, build.cast(Int64, begins))
    build.append(ops.For((result,), at, zero, size, one, (zero,), (count,), body.freeze(following)))
    return Number(result)


def device_type(low: Lowering, device: Handle) -> Handle:
    """`d.type` of a device that is known at the call: "" for a type without a name."""
    build = low.builder
    kind = build.cast(Int32, device.leaves[0])
    found = constant(low, "").leaves
    for name, code in DEVICE_CODES.items():
        same = build.compare("eq", kind, build.constant(Int32, code))
        with build.region() as region:
            text = constant(low, name).leaves
        then = region.freeze(*text)
        found = build.if_(same, then, ops.Region((), found), ("text", "text_size"))
    return Handle(params.String("type"), tuple(found), f"{device.name}.type")


def truth(low: Lowering, text: Handle) -> Number:
    """Whether a text is not empty."""
    return Number(low.builder.compare("ne", text.leaves[1], low.builder.constant(Int64, 0)))
