"""Signatures as text: the short form that messages show, and a full form that can be read back.

The full form is that of a Python function's head, with the symbols behind it:

    f(a: Tensor([n0, 8], float32, strides=[8, 1], align=16), k: int32 = 3) where n0: int32 % 16

`parse_signature` reads it with Python's own parser, and never evaluates it.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from ferrule.specs.dtypes import BY_NAME, as_dtype
from ferrule.specs.expr import Dim, ExprOp, Sym, format_dim, make, sym_int
from ferrule.specs.params import (
    PACKED_NAME,
    REQUIRED,
    AddressSpace,
    AnyValue,
    Array,
    Bytes,
    Constant,
    DataType,
    Device,
    Dict,
    EnvStream,
    Function,
    List,
    Map,
    Module,
    NoneValue,
    Object,
    Optional,
    Param,
    Pointer,
    Scalar,
    Shape,
    Stream,
    String,
    Tensor,
    Tuple,
    Union,
    compact_strides,
)
from ferrule.specs.signature import Signature

Names = Mapping[Sym, str]

_WORDS: Final[dict[type, str]] = {
    Stream: "Stream",
    String: "str",
    Bytes: "bytes",
    DataType: "dtype",
    Device: "Device",
    NoneValue: "None",
    Function: "Function",
    Module: "Module",
    AnyValue: "Any",
}
_KINDS: Final[dict[str, Callable[..., Param]]] = {word: kind for kind, word in _WORDS.items()}


def short_param(param: Param, names: Names) -> str:
    """`a: Tensor([n0, 8], float32)`, with the default where there is one."""
    tail = "" if param.default is REQUIRED else f" = {_literal(param.default)}"
    return f"{param.name}: {kind_text(param, names, full=False)}{tail}"


def full_text(signature: Signature) -> str:
    """The full form of a signature."""
    params = []
    for param in signature.params:
        has_tail = param.default is not REQUIRED and not isinstance(param, EnvStream)
        tail = f" = {_literal(param.default)}" if has_tail else ""
        params.append(f"{param.name}: {kind_text(param, signature.symbols, full=True)}{tail}")
    symbols = ", ".join(_symbol_text(s, name) for s, name in signature.symbols.items())
    return f"{signature.name}({', '.join(params)})" + (f" where {symbols}" if symbols else "")


def _symbol_text(symbol: Sym, name: str) -> str:
    divisible = f" % {symbol.divisibility}" if symbol.divisibility > 1 else ""
    return f"{name}: int{symbol.width}{divisible}"


def _literal(value: Any) -> str:
    """A default or constant, as `_read_literal` reads it."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if isinstance(value, (tuple, list)):
        items = ", ".join(_literal(item) for item in value)
        return f"({items},)" if len(value) == 1 else f"({items})"
    return repr(value)


def _dims(dims: tuple[Dim, ...], names: Names) -> str:
    return f"[{', '.join(format_dim(dim, names) for dim in dims)}]"


def kind_text(param: Param, names: Names, *, full: bool) -> str:
    """What a parameter takes: `Tensor([n0, 8], float32)`, `int32`, `Tuple[int32, None]`."""

    def inner(item: Param | None) -> str:
        return "Any" if item is None else kind_text(item, names, full=full)

    match param:
        case Tensor():
            return _tensor_text(param, names, full)
        case Scalar(dtype=dtype):
            return dtype.name
        case Shape(dims=dims, kind=kind):
            return f"{kind}({_dims(dims, names)})"
        case Pointer():
            return _pointer_text(param, full)
        case EnvStream(device=device, device_id=device_id):
            index = [] if device_id is None else [f"device_id={device_id}"]
            return f"EnvStream({', '.join([device, *index] if device else index)})"
        case Tuple(items=items, fields=fields):
            if full and fields:
                named = ", ".join(f"{item.name}={inner(item)}" for item in items)
                return f"Fields({named})"
            return f"Tuple[{', '.join(map(inner, items)) or '()'}]"
        case Optional(item=item):
            return f"Optional[{inner(item)}]"
        case Union(members=members):
            return f"Union[{', '.join(map(inner, members))}]"
        case Constant(value=value):
            return f"Literal[{_literal(value)}]"
        case Array(item=item) | List(item=item):
            return f"{type(param).__name__}[{inner(item)}]"
        case Map(key=key, value=value) | Dict(key=key, value=value):
            return f"{type(param).__name__}[{inner(key)}, {inner(value)}]"
        case Object(type_key=type_key):
            return f"Object({type_key!r})" if full else f"Object({type_key})"
    return _WORDS[type(param)]


def _tensor_text(tensor: Tensor, names: Names, full: bool) -> str:
    dtype = PACKED_NAME if tensor.packed else tensor.dtype.name
    parts = [_dims(tensor.shape, names), dtype]
    if full:
        parts += _tensor_details(tensor, names)
    return f"Tensor({', '.join(parts)})"


def _tensor_details(tensor: Tensor, names: Names) -> list[str]:
    row_major = compact_strides(tensor.shape, tuple(reversed(range(len(tensor.shape)))))
    details = []
    if tensor.strides != row_major:
        details.append(f"strides={_dims(tensor.strides, names)}")
    if tensor.device is not None:
        details.append(f"device={tensor.device}")
    if tensor.device_id is not None:
        details.append(f"device_id={tensor.device_id}")
    if tensor.align != tensor.dtype.itemsize:
        details.append(f"align={tensor.align}")
    flags = {"read_only": tensor.read_only, "owning": tensor.owning}
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


def parse_signature(text: str) -> Signature:
    """The signature that has this full form.  Raises ValueError that says what cannot be read."""
    try:
        return _parse(text)
    except (TypeError, KeyError, OverflowError) as error:
        raise ValueError(f"{text!r} is no signature: {error}") from error


def _parse(text: str) -> Signature:
    head, declared = _split(text)
    symbols = {arg.arg: _read_symbol(text, arg) for arg in declared.args}
    pairs = zip(head.args.kwonlyargs, head.args.kw_defaults, strict=True)
    reader = _Reader(text, symbols)
    return Signature(head.name, tuple(reader.param(arg, default) for arg, default in pairs))


def _split(text: str) -> tuple[ast.FunctionDef, ast.arguments]:
    """The head and the symbols behind it.  A literal of the head can hold " where " as well."""
    places = [i for i in range(len(text)) if text.startswith(" where ", i)]
    for end in (len(text), *reversed(places)):
        name, _, params = text[:end].partition("(")
        # Behind a bare * a parameter without a default may follow one with a default.
        star = "" if params == ")" else "*, "
        head = _head(f"{name}({star}{params}")
        if head is not None:
            declared = _head(f"where({text[end + len(' where ') :]})")
            if declared is not None:
                return head, declared.args
    raise ValueError(f"{text!r} is no signature")


def _head(text: str) -> ast.FunctionDef | None:
    """A text that is the head of one function, else None."""
    try:
        statements = ast.parse(f"def {text}: pass").body
    except (SyntaxError, ValueError):
        return None
    match statements:
        case [ast.FunctionDef(returns=None, args=ast.arguments(vararg=None, kwarg=None)) as head]:
            return head
    return None


def _read_symbol(text: str, arg: ast.arg) -> Sym:
    divisibility, kind = 1, arg.annotation
    match kind:
        case ast.BinOp(left=left, op=ast.Mod(), right=ast.Constant(value=int(value))):
            divisibility, kind = value, left
    if not isinstance(kind, ast.Name) or kind.id not in ("int32", "int64"):
        raise ValueError(f"{text!r}: the symbol {arg.arg} must be an int32 or int64")
    return sym_int(int(kind.id[3:]), divisibility=divisibility, symbol=arg.arg)


_OPERATORS: Final[dict[type[ast.operator], ExprOp]] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
}
_CALLS: Final[dict[str, ExprOp]] = {"min": "min", "max": "max", "ceil_div": "ceildiv"}
_SPECIAL_FLOATS: Final = {"nan": math.nan, "inf": math.inf}


class _Reader:
    """Reads the nodes of a signature's text."""

    def __init__(self, text: str, symbols: dict[str, Sym]) -> None:
        self.text = text
        self.symbols = symbols

    def refuse(self, node: ast.AST) -> ValueError:
        return ValueError(f"{self.text!r} cannot be read at {ast.unparse(node)!r}")

    def param(self, arg: ast.arg, default: ast.expr | None) -> Param:
        if arg.annotation is None:
            raise ValueError(f"{self.text!r}: the parameter {arg.arg} has no kind")
        rest = {} if default is None else {"default": self.literal(default)}
        return self.kind(arg.arg, arg.annotation, rest)

    def kind(self, name: str, node: ast.expr, rest: dict[str, Any]) -> Param:
        match node:
            case ast.Constant(value=None):
                return NoneValue(name, **rest)
            case ast.Name(id=word) if word in BY_NAME:
                return Scalar(name, word, **rest)
            case ast.Name(id=word) if word in _KINDS:
                return _KINDS[word](name, **rest)
            case ast.Call(func=ast.Name(id=word), args=args, keywords=keywords):
                options = {k.arg: k.value for k in keywords if k.arg is not None}
                if len(options) != len(keywords):
                    raise self.refuse(node)
                return self.call(name, node, word, args, options, rest)
            case ast.Subscript(value=ast.Name(id=word), slice=inside):
                return self.subscript(name, node, word, inside, rest)
        raise self.refuse(node)

    def call(
        self,
        name: str,
        node: ast.expr,
        word: str,
        args: list[ast.expr],
        options: dict[str, ast.expr],
        rest: dict[str, Any],
    ) -> Param:
        match word:
            case "Tensor" if len(args) == 2:
                return self.tensor(name, args, options)
            case "Shape" | "Stride" | "Coord" | "Tile" | "IntTuple" if len(args) == 1:
                return Shape(name, self.dims(args[0]), word, **rest)
            case "Pointer":
                return self.pointer(name, args, options, rest)
            case "EnvStream":
                values = {key: self.literal(value) for key, value in options.items()}
                return EnvStream(name, self.word(args[0]) if args else None, **values)
            case "Fields" if not args:
                items = tuple(self.kind(field, kind, {}) for field, kind in options.items())
                return Tuple(name, items, True, **rest)
            case "Object" if len(args) == 1:
                return Object(name, self.literal(args[0]), **rest)
        raise self.refuse(node)

    def tensor(self, name: str, args: list[ast.expr], options: dict[str, ast.expr]) -> Tensor:
        read: dict[str, Callable[[ast.expr], Any]] = {"strides": self.dims, "device": self.word}
        values = {key: read.get(key, self.literal)(node) for key, node in options.items()}
        return Tensor(name, self.dims(args[0]), self.word(args[1]), **values)

    def pointer(
        self, name: str, args: list[ast.expr], options: dict[str, ast.expr], rest: dict[str, Any]
    ) -> Pointer:
        if len(args) > 1:
            raise self.refuse(args[1])
        dtype = as_dtype(self.word(args[0])) if args else None
        space = AddressSpace.generic
        if "address_space" in options:
            space = AddressSpace(self.word(options.pop("address_space")))
        values = {key: self.literal(node) for key, node in options.items()}
        return Pointer(name, dtype, space, **values, **rest)

    def subscript(
        self, name: str, node: ast.expr, word: str, inside: ast.expr, rest: dict[str, Any]
    ) -> Param:
        parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
        if word == "Literal":
            return Constant(name, self.literal(inside), **rest)
        if word == "Tuple":
            items = (self.kind(str(i), part, {}) for i, part in enumerate(parts))
            return Tuple(name, tuple(items), False, **rest)
        if word == "Union":
            return Union(name, tuple(self.kind(name, part, {}) for part in parts), **rest)
        if word == "Optional":
            return Optional(name, self.kind(name, inside, {}), **rest)
        inner = [None if self.is_any(part) else self.kind(name, part, {}) for part in parts]
        match word, inner:
            case "Array", [item]:
                return Array(name, item, **rest)
            case "List", [item]:
                return List(name, item, **rest)
            case "Map", [key, value]:
                return Map(name, key, value, **rest)
            case "Dict", [key, value]:
                return Dict(name, key, value, **rest)
        raise self.refuse(node)

    def is_any(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id == "Any"

    def word(self, node: ast.expr) -> str:
        if isinstance(node, ast.Name):
            return node.id
        raise self.refuse(node)

    def literal(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=word) if word in _SPECIAL_FLOATS:
                return _SPECIAL_FLOATS[word]
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.literal(operand)
            case ast.Tuple(elts=elts):
                return tuple(self.literal(item) for item in elts)
        raise self.refuse(node)

    def dims(self, node: ast.expr) -> tuple[Dim, ...]:
        if isinstance(node, ast.List):
            return tuple(self.dim(item) for item in node.elts)
        raise self.refuse(node)

    def dim(self, node: ast.expr) -> Dim:
        match node:
            case ast.Constant(value=int(value)):
                return value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(value))):
                return -value
            case ast.Name(id=word) if word in self.symbols:
                return self.symbols[word]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return make(_OPERATORS[type(op)], self.dim(left), self.dim(right))
            case ast.Call(func=ast.Name(id=word), args=[left, right]) if word in _CALLS:
                return make(_CALLS[word], self.dim(left), self.dim(right))
        raise self.refuse(node)
