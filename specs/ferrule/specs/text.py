"""Signatures as text: a short form for messages, and a full form that can be parsed again.

The full form is the head of a Python function, with its symbols at the end:

    f(a: Tensor([n0, 8], float32, strides=[8, 1], align=16), k: int32 = 3) where n0: int32 % 16

Behind the type of a symbol stand its divisibility and its bounds, `where n: int32 % 16 in 1..4096`.
The short form has the bounds in the shape: `Tensor([n: 16..4096], float32)`.  Requirements stand
behind the symbols, `requires n * m <= 4096, (n % 4 == 0, 'whole vectors')`.

The result follows the parameters, `f(k: int32) -> Tuple[int32, float32]`.  A field with a default,
in a named tuple or dataclass, is `x=Default(int32, 3)`.  As in Python, parameters before `/` are
positional-only, and parameters after `*` are keyword-only.

`reading.parse_signature` parses the full form.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from typing_extensions import assert_never

from ferrule.specs.expr import Dim, Sym, format_dim
from ferrule.specs.literals import literal_text
from ferrule.specs.params import (
    PACKED_NAME,
    REQUIRED,
    AddressSpace,
    AnyOrTuple,
    AnyValue,
    Constant,
    Elements,
    EnvStream,
    Object,
    Optional,
    Pairs,
    Param,
    Plain,
    Pointer,
    Scalar,
    Shape,
    Tensor,
    Tuple,
    Union,
    row_major_strides,
)
from ferrule.specs.requirements import Requirement

if TYPE_CHECKING:
    from ferrule.specs.signature import Signature

Names = Mapping[Sym, str]


def short_param(param: Param, names: Names) -> str:
    """`a: Tensor([n0, 8], float32)`, with the default where there is one."""
    tail = "" if param.default is REQUIRED else f" = {literal_text(param.default)}"
    return f"{param.name}: {kind_text(param, names, full=False)}{tail}"


def full_text(signature: Signature) -> str:
    """The full form of a signature."""
    params = []
    for param in signature.params:
        has_tail = param.default is not REQUIRED and not isinstance(param, EnvStream)
        tail = f" = {literal_text(param.default)}" if has_tail else ""
        params.append(f"{param.name}: {kind_text(param, signature.symbols, full=True)}{tail}")
    symbols = ", ".join(_symbol_text(s, name) for s, name in signature.names.items())
    by_position = len(params) - signature.keyword_only
    head = f"{signature.name}({', '.join(marked(params, signature.positional_only, by_position))})"
    if signature.result is not None:
        head += f" -> {kind_text(signature.result, signature.names, full=True)}"
    required = ", ".join(_requirement_text(each, signature) for each in signature.requires)
    head += f" where {symbols}" if symbols else ""
    return head + (f" requires {required}" if required else "")


def marked(shown: Sequence[str], unnamed: int, positional: int) -> list[str]:
    """Parameters in Python's syntax: / after positional-only ones, * before keyword-only ones."""
    texts = [*shown[:unnamed], *(["/"] if unnamed else []), *shown[unnamed:positional]]
    return texts + (["*", *shown[positional:]] if positional < len(shown) else [])


def _requirement_text(required: Requirement, signature: Signature) -> str:
    text = required.text(signature.known)
    return text if required.message is None else f"({text}, {literal_text(required.message)})"


def _symbol_text(symbol: Sym, name: str) -> str:
    divisible = f" % {symbol.divisibility}" if symbol.divisibility > 1 else ""
    bounds = f" in {symbol.bounds}" if symbol.bounds else ""
    return f"{name}: int{symbol.width}{divisible}{bounds}"


def _dims(dims: tuple[Dim, ...], names: Names) -> str:
    return f"[{', '.join(format_dim(dim, names) for dim in dims)}]"


def _sizes(dims: tuple[Dim, ...], names: Names, full: bool) -> str:
    """Sizes; in the short form with the bounds of each that is a symbol, `[n: 1..4096, 8]`."""
    return _dims(dims, names) if full else f"[{', '.join(_size(dim, names) for dim in dims)}]"


def _size(dim: Dim, names: Names) -> str:
    text = format_dim(dim, names)
    return f"{text}: {dim.bounds}" if isinstance(dim, Sym) and dim.bounds else text


def kind_text(param: Param, names: Names, *, full: bool) -> str:
    """The kind of a parameter: `Tensor([n0, 8], float32)`, `int32`, `Tuple[int32, None]`."""

    def inner(item: Param | None) -> str:
        return "Any" if item is None else kind_text(item, names, full=full)

    match param:
        case Tensor():
            return _tensor_text(param, names, full)
        case Scalar(dtype=dtype):
            return dtype.name
        case Shape(dims=dims, kind=kind):
            return f"{kind}({_sizes(dims, names, full)})"
        case Pointer():
            return _pointer_text(param, full)
        case EnvStream(device=device, device_id=device_id):
            index = [] if device_id is None else [f"device_id={device_id}"]
            return f"EnvStream({', '.join([device, *index] if device else index)})"
        case Tuple(items=items, fields=fields):
            if full and fields:
                named = ", ".join(f"{item.name}={_field_text(item, names)}" for item in items)
                return f"Fields({named})"
            return f"Tuple[{', '.join(map(inner, items)) or '()'}]"
        case Optional(item=item):
            return f"Optional[{inner(item)}]"
        case Union(members=members):
            return f"Union[{', '.join(map(inner, members))}]"
        case Constant(value=value):
            return f"Literal[{literal_text(value)}]"
        case Elements(item=item):
            return f"{param.traits.word}[{inner(item)}]"
        case Pairs(key=key, value=value):
            return f"{param.traits.word}[{inner(key)}, {inner(value)}]"
        case Object(type_key=type_key):
            return f"Object({type_key!r})" if full else f"Object({type_key})"
        case AnyOrTuple() if not full:
            return AnyValue.traits.word
        case Plain():
            return _plain_text(param)
        case _:
            assert_never(param)


def _plain_text(param: Plain) -> str:
    """The word of a kind, with the fields that it adds as literals."""
    values = ", ".join(literal_text(getattr(param, name)) for name in param.literal_fields())
    return f"{param.traits.word}({values})" if values else param.traits.word


def _field_text(field: Param, names: Names) -> str:
    kind = kind_text(field, names, full=True)
    has_default = field.default is not REQUIRED
    return f"Default({kind}, {literal_text(field.default)})" if has_default else kind


def _tensor_text(tensor: Tensor, names: Names, full: bool) -> str:
    dtype = PACKED_NAME if tensor.packed else tensor.dtype.name
    parts = [_sizes(tensor.shape, names, full), dtype]
    if full:
        parts += _tensor_details(tensor, names)
    return f"Tensor({', '.join(parts)})"


def _tensor_details(tensor: Tensor, names: Names) -> list[str]:
    row_major = row_major_strides(tensor.shape)
    details = []
    if tensor.strides != row_major:
        details.append(f"strides={_dims(tensor.strides, names)}")
    if tensor.device is not None:
        details.append(f"device={tensor.device}")
    if tensor.device_id is not None:
        details.append(f"device_id={tensor.device_id}")
    if tensor.align != tensor.dtype.itemsize:
        details.append(f"align={tensor.align}")
    if tensor.exact_strides:
        details.append(f"exact_strides={list(tensor.exact_strides)}")
    flags = {"read_only": tensor.read_only, "owning": tensor.owning, "exact": tensor.exact}
    return details + [f"{name}=True" for name, flag in flags.items() if flag]


def _pointer_text(pointer: Pointer, full: bool) -> str:
    parts = [pointer.dtype.name] if pointer.dtype is not None else []
    if full:
        if pointer.address_space is not AddressSpace.generic:
            parts.append(f"address_space={pointer.address_space.value}")
        if pointer.align != 1:
            parts.append(f"align={pointer.align}")
        if not pointer.nullable:
            parts.append("nullable=False")
    return f"Pointer({', '.join(parts)})"
