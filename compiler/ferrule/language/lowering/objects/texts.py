"""Run-time strings, bytes, dtypes and devices: comparisons, length, truth.

Bytes are read with the IR's own loads and loops, so targets need no code for them.
"""

from __future__ import annotations

import ast
from functools import partial
from typing import Any, Final

from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType
from ferrule.language.lowering.arguments import bound
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.handles import compares
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.tensors import devices, views
from ferrule.language.values import BoundMethod, Handle, Number
from ferrule.specs import DEVICE_CODES, Boolean, DType, Int32, Int64, Uint8, params
from ferrule.specs.dtypes import as_dtype

_NUMBER_BITS: Final = 32
"""The bit position of a device's number, above its type."""


def compare(low: Lowering, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Any:
    """`==` and `!=`, where at least one side `compares`."""
    handle, other = (left, right) if compares(left) else (right, left)
    if not isinstance(op, (ast.Eq, ast.NotEq)):
        low.fail(
            node,
            f"{describe(handle)} is compared with another operator",
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
                f"{describe(handle)} is compared with {describe(other)}",
                expected=f"{_description(handle)} on both sides",
            )
    return Number(low.builder.unary("not", equal)) if isinstance(op, ast.NotEq) else Number(equal)


def _description(handle: Handle) -> str:
    assert isinstance(handle.param, params.WithTraits)
    return handle.param.traits.description


def _same_kind(handle: Handle, other: Any) -> bool:
    return isinstance(other, Handle) and type(other.param) is type(handle.param)


def constant(low: Lowering, text: str | bytes) -> Handle:
    """A compile-time text as a run-time value."""
    text = low.known_text(text)
    data = text.encode() if isinstance(text, str) else text
    address = ops.Value(HandleType("bytes"), "text")
    low.builder.append(ops.Text(address, data))
    param = params.String("text") if isinstance(text, str) else params.Bytes("text")
    return Handle(param, (address, low.builder.constant(Int64, len(data))), repr(text))


def _same_bytes(
    low: Lowering, left: tuple[ops.Value, ...], right: tuple[ops.Value, ...]
) -> ops.Value:
    """Whether two texts, address and length, are equal; it stops at the first difference."""
    build = low.builder
    with build.region() as then:
        equal = _same_from(low, left, right, build.constant(Int64, 0))
    sizes = build.compare("eq", left[1], right[1])
    return build.if_(sizes, then.freeze(equal), _no(low), ("same",))[0]


def _no(low: Lowering) -> ops.Region:
    with low.builder.region() as region:
        no = low.builder.constant(Boolean, False)
    return region.freeze(no)


def _same_from(
    low: Lowering, text: tuple[ops.Value, ...], part: tuple[ops.Value, ...], at: ops.Value
) -> ops.Value:
    """Whether a text contains another one at this position, which must be in range."""
    from_there, other = (views.pointer_to(low, x[0], Uint8, 1, "text") for x in (text, part))
    begin = low.builder.view(from_there.value, from_there.type, (at,))
    behind = _first_difference(low, begin, other.value, part[1])
    return low.builder.compare("eq", behind, part[1])


def _at_end_of(
    low: Lowering,
    args: list[Any],
    kwargs: dict[str, Any],
    node: ast.Call,
    *,
    text: Handle,
    end: bool,
) -> Number:
    """`text.startswith(part)`, `text.endswith(part)`."""
    (part,) = bound(low, "part", args, kwargs, node)
    other = _part(low, text, part, node)
    build, size = low.builder, text.leaves[1]
    room = build.binary("sub", size, other.leaves[1])
    with build.region() as then:
        same = _same_from(low, text.leaves, other.leaves, room if end else build.constant(Int64, 0))
    fits = build.compare("ge", room, build.constant(Int64, 0))
    return Number(build.if_(fits, then.freeze(same), _no(low), ("same",))[0])


def _part(low: Lowering, text: Handle, part: Any, node: ast.AST) -> Handle:
    """A text of the same kind; it may be a compile-time text."""
    if isinstance(part, (str, bytes)):
        part = constant(low, part)
    if not _same_kind(text, part):
        low.fail(
            node,
            f"{describe(part)} is looked for in {describe(text)}",
            expected=_description(text),
        )
    assert isinstance(part, Handle)
    return part


def contains(low: Lowering, part: Any, text: Handle, node: ast.AST) -> Number:
    """`part in text`: tries each position."""
    other, build = _part(low, text, part, node), low.builder
    zero, one = build.constant(Int64, 0), build.constant(Int64, 1)
    last = build.binary("sub", text.leaves[1], other.leaves[1])
    at, found = ops.Value(Int64, "at"), ops.Value(Boolean, "found")
    with build.region() as test:
        inside = build.compare("le", at, last)
        more = build.binary("and", inside, build.unary("not", found))
    with build.region() as body:
        same = _same_from(low, text.leaves, other.leaves, at)
        following = build.binary("add", at, one)
    begin, carried = (zero, build.constant(Boolean, False)), (at, found)
    results = (ops.Value(Int64, "at"), ops.Value(Boolean, "found"))
    loop = ops.While(results, begin, carried, test.freeze(more), body.freeze(following, same))
    build.append(loop)
    return Number(results[1])


_METHODS: Final = {"startswith": False, "endswith": True}


def attribute(low: Lowering, text: Handle, attr: str, node: ast.AST) -> BoundMethod:
    """`text.startswith`, `text.endswith`."""
    if attr not in _METHODS:
        low.fail(
            node,
            f"{describe(text)} has no attribute {attr!r}",
            expected="startswith, endswith; ==, in, len",
        )
    return BoundMethod(partial(_at_end_of, text=text, end=_METHODS[attr]), attr)


def _first_difference(low: Lowering, a: ops.Value, b: ops.Value, size: ops.Value) -> ops.Value:
    """The position of the first byte that differs, Int64; the size if there is none."""
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
        bits = coercion.at_compile_time(low, node, lambda: as_dtype(other)).dlpack
        signed = bits - (1 << 32) if bits >= 1 << 31 else bits
        return low.builder.compare("eq", handle.leaves[0], low.builder.constant(Int32, signed))
    return low.builder.compare("eq", handle.leaves[0], other.leaves[0])


def _same_device(low: Lowering, handle: Handle, other: Any, node: ast.AST) -> ops.Value:
    """ "cuda" matches any device of this type, "cuda:1" only that one."""
    build, value = low.builder, handle.leaves[0]
    if isinstance(other, Handle):
        return build.compare("eq", value, other.leaves[0])
    kind, number = device_parts(low, other, node)
    if number is not None:
        return build.compare("eq", value, build.constant(Int64, kind | number << _NUMBER_BITS))
    return build.compare("eq", build.cast(Int32, value), build.constant(Int32, kind))


def device_parts(low: Lowering, name: str, node: ast.AST) -> tuple[int, int | None]:
    """The type and the number of a device such as "cuda:1"; None for a missing number."""
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
        # A byte 10xxxxxx goes on with a character of UTF-8; each other one begins one.
        top = build.binary("and", build.load(data, (at,)), build.constant(Uint8, 0xC0))
        begins = build.compare("ne", top, build.constant(Uint8, 0x80))
        following = build.binary("add", count, build.cast(Int64, begins))
    build.append(ops.For((result,), at, zero, size, one, (zero,), (count,), body.freeze(following)))
    return Number(result)


def truth(low: Lowering, text: Handle) -> Number:
    """Whether a text is not empty."""
    return Number(low.builder.compare("ne", text.leaves[1], low.builder.constant(Int64, 0)))


# ---- parts of devices ----


def device_attribute(low: Lowering, device: Handle, attr: str, node: ast.AST) -> Any:
    """`d.type`, which is a compile-time value for a tensor's device; `d.index`, an Int32."""
    match attr:
        case "type" if isinstance(device, devices.CallDevice):
            return device.kind
        case "type":
            return device_type(low, device)
        case "index" if isinstance(device, devices.CallDevice) and device.kind == "cpu":
            return 0
        case "index":
            bits = low.builder.constant(Int64, _NUMBER_BITS)
            number = low.builder.binary("shr", device.leaves[0], bits)
            return Number(low.builder.cast(Int32, number))
    low.fail(
        node,
        f"{describe(device)} has no attribute {attr!r}",
        expected="type or index",
    )


def device_type(low: Lowering, device: Handle) -> Handle:
    """`d.type` of a run-time device: "" for a type without a name."""
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
