"""Parses the full form of a signature, with Python's own parser; no text is evaluated."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable
from functools import reduce
from operator import and_, or_
from typing import Any, Final, get_args

from ferrule.specs.conditions import ComparisonOp, Condition, compare
from ferrule.specs.dtypes import BY_NAME, as_dtype
from ferrule.specs.expr import Dim, ExprOp, Sym, make, sym_int
from ferrule.specs.literals import read_literal
from ferrule.specs.overloads import read_overloads
from ferrule.specs.params import (
    AddressSpace,
    Array,
    Constant,
    Dict,
    EnvStream,
    List,
    Map,
    NoneValue,
    Object,
    Optional,
    Param,
    Plain,
    Pointer,
    Scalar,
    Shape,
    Tensor,
    Tuple,
    Union,
)
from ferrule.specs.requirements import Requirement, aligned, compare_float, require
from ferrule.specs.signature import Signature

_KINDS: Final[dict[str, type[Any]]] = {
    kind.traits.word: kind for kind in get_args(Param) if issubclass(kind, Plain)
}


_OP: Final = tokenize.OP
_MARKS: Final = re.compile(r"[(,] ?[/*]")

_WHERE: Final = re.compile("(?= where )")
_REQUIRES: Final = re.compile(" requires ")
_BOUNDS: Final = re.compile(r"(?<= in )(-?\d+)?\.\.(-?\d+)?")


def parse_signature(text: str) -> Signature:
    """The signature with this full form.  Raises ValueError that shows the unreadable text."""
    try:
        return _parse_any(text)
    except (TypeError, KeyError, OverflowError, SyntaxError, tokenize.TokenError) as error:
        raise ValueError(f"{text!r} is no signature: {error}") from error


_ALIGNED: Final = re.compile(r"(\w+) is (\d+)-byte aligned")


def parse_condition(text: str, signature: Signature) -> Condition:
    """The condition with this text, over the sizes, integers and tensors of a signature, as
    `format_condition` writes it with the names of `signature.known`.

    Raises ValueError for any other text; a junction of alignments cannot be read.
    """
    found = _ALIGNED.fullmatch(text)
    if found is not None:
        tensors = {each.name: each for each in signature.params if isinstance(each, Tensor)}
        # Otherwise the text may still be a condition that names no tensor.
        if found[1] in tensors:
            return aligned(tensors[found[1]].data, int(found[2]))
    symbols = {name: symbol for symbol, name in signature.known.items()}
    scalars = [each for each in signature.params if isinstance(each, Scalar)]
    values = {each.name: each.value for each in scalars if each.dtype.kind != "float"}
    floats = {each.name: each for each in scalars if each.dtype.kind == "float"}
    try:
        node = ast.parse(text, mode="eval").body
        return _Reader(text, symbols, values, floats).condition(node)
    except (SyntaxError, TypeError, KeyError) as error:
        raise ValueError(f"{text!r} is no condition of {signature}: {error}") from error


def is_of_made(text: str, signature: Signature) -> bool:
    """Whether a condition is the alignment of a tensor that is no parameter: one that the call
    itself allocates."""
    found = _ALIGNED.fullmatch(text)
    return found is not None and found[1] not in {each.name for each in signature.params}


def _parse_any(text: str) -> Signature:
    try:
        return _parse(text)
    except ValueError:
        if "\n" not in text:
            raise
        return read_overloads(text, _parse)


def _parse(text: str) -> Signature:
    plain, unnamed, positional = _without_marks(text)
    plain, required = _without_requirements(plain)
    head, declared = _split(plain)
    symbols = {arg.arg: _read_symbol(text, arg) for arg in declared.args}
    pairs = zip(head.args.kwonlyargs, head.args.kw_defaults, strict=True)
    reader = _Reader(text, symbols)
    params = tuple(reader.param(arg, default) for arg, default in pairs)
    result = None if head.returns is None else reader.kind("result", head.returns, {})
    named_alone = 0 if positional is None else len(params) - positional
    if positional is not None and named_alone == 0:
        raise ValueError(f"{text!r} cannot be read: nothing stands behind *")
    integers = {each.name: each for each in params if isinstance(each, Scalar)}
    requires = [reader.requirement(node, integers) for node in required]
    return Signature(head.name, params, result, unnamed, named_alone, tuple(requires))


def _without_marks(text: str) -> tuple[str, int, int | None]:
    """Remove the markers `/` and `*` from the parameters.

    Returns the text, the number of parameters before `/`, and the number before `*`; None if there
    is no `*`.
    """
    # A look that costs little: few signatures have marks, and tokens cost much more.
    if not _MARKS.search(text):
        return text, 0, None
    depth, before, found = 0, 0, {}
    cut, end, previous = "", 0, ""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        depth += (token.string in "([{") - (token.string in ")]}") if token.type == _OP else 0
        if depth == 1 and token.string in ("/", "*") and previous in ("(", ","):
            if token.string in found or (token.string, before) == ("/", 0) or "*" in found:
                raise ValueError(f"{text!r} cannot be read at {token.string!r}")
            found[token.string] = before
            if text[token.end[1] :].lstrip()[:1] not in (",", ")"):
                raise ValueError(f"{text!r} cannot be read at {token.string!r}")
            cut, end = cut + text[end : token.start[1]], text.find(",", token.end[1]) + 1
            end = end or token.end[1]
        elif depth == 1 and token.string == "," and previous not in ("/", "*"):
            before += 1
        if depth == 0 and previous == ")":
            break
        previous = token.string
    return cut + text[end:], found.get("/", 0), found.get("*")


def _without_requirements(text: str) -> tuple[str, list[ast.expr]]:
    """Split the requirements from what is before " requires ", which a literal can have too."""
    # From behind: a literal that contains " requires " stands before the requirements.
    for found in reversed(list(_REQUIRES.finditer(text))):
        try:
            listed = ast.parse(f"[{text[found.end() :]}]", mode="eval").body
            _split(text[: found.start()])
        except (SyntaxError, ValueError):
            continue
        if isinstance(listed, ast.List):
            return text[: found.start()], listed.elts
    return text, []


def _split(text: str) -> tuple[ast.FunctionDef, ast.arguments]:
    """Split the head from the symbols after " where ", which can also occur in a literal of it."""
    places = [found.start() for found in _WHERE.finditer(text)]
    for end in (len(text), *reversed(places)):
        name, _, params = text[:end].partition("(")
        # Behind a bare * a parameter without a default may follow one with a default.
        star = "" if params.startswith(")") else "*, "
        head = _head(f"{name}({star}{params}")
        if head is not None:
            declared = _head(f"where({_as_pairs(text[end + len(' where ') :])})")
            if declared is not None and declared.returns is None:
                return head, declared.args
    raise ValueError(f"{text!r} is no signature")


def _head(text: str) -> ast.FunctionDef | None:
    """Parse the head of one function; None if the text is anything else."""
    try:
        statements = ast.parse(f"def {text}: pass").body
    except (SyntaxError, ValueError):
        return None
    match statements:
        case [ast.FunctionDef(args=ast.arguments(vararg=None, kwarg=None)) as head]:
            return head
    return None


def _read_symbol(text: str, arg: ast.arg) -> Sym:
    bounds, divisibility, kind = {}, 1, arg.annotation
    match kind:
        case ast.Compare(left=left, ops=[ast.In()], comparators=[ast.Tuple(elts=[low, high])]):
            bounds = {"min": _read_bound(low), "max": _read_bound(high)}
            kind = left
    match kind:
        case ast.BinOp(left=left, op=ast.Mod(), right=ast.Constant(value=int(value))):
            divisibility, kind = value, left
    if not isinstance(kind, ast.Name) or kind.id not in ("int32", "int64"):
        raise ValueError(f"{text!r}: the symbol {arg.arg} must be an int32 or int64")
    return sym_int(int(kind.id[3:]), divisibility=divisibility, symbol=arg.arg, **bounds)


def _read_bound(node: ast.expr) -> int | None:
    match read_literal(node):
        case None | int() as bound:
            return bound
    raise ValueError(f"{ast.unparse(node)!r} is no bound of a symbol")


def _as_pairs(symbols: str) -> str:
    """The text of symbols with each `1..4096` as `(1, 4096)`, and None for a bound that is not
    there."""
    return _BOUNDS.sub(lambda found: f"({found[1] or None}, {found[2] or None})", symbols)


_OPERATORS: Final[dict[type[ast.operator], ExprOp]] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.FloorDiv: "floordiv",
    ast.Mod: "mod",
}
_COMPARED: Final[dict[type[ast.cmpop], ComparisonOp]] = {
    ast.Lt: "lt",
    ast.LtE: "le",
    ast.Gt: "gt",
    ast.GtE: "ge",
    ast.Eq: "eq",
    ast.NotEq: "ne",
}
_CALLS: Final[dict[str, ExprOp]] = {"min": "min", "max": "max", "ceil_div": "ceildiv"}


class _Reader:
    """Reads the nodes of a signature's text."""

    def __init__(
        self,
        text: str,
        symbols: dict[str, Sym],
        values: dict[str, Sym] | None = None,
        floats: dict[str, Scalar] | None = None,
    ) -> None:
        self.text = text
        self.symbols = symbols
        self.values = values or {}
        self.floats = floats or {}

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
                return self.plain(name, word, {}, rest)
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
                items = tuple(self.field(field, kind) for field, kind in options.items())
                return Tuple(name, items, True, **rest)
            case "Object" if len(args) == 1:
                return Object(name, self.literal(args[0]), **rest)
            case _ if word in _KINDS and args and not options:
                fields = _KINDS[word].literal_fields()
                if len(args) == len(fields):
                    values = dict(zip(fields, map(self.literal, args), strict=True))
                    return self.plain(name, word, values, rest)
        raise self.refuse(node)

    def plain(self, name: str, word: str, values: dict[str, Any], rest: dict[str, Any]) -> Param:
        found: Param = _KINDS[word](name, **values, **rest)
        return found

    def field(self, name: str, node: ast.expr) -> Param:
        match node:
            case ast.Call(func=ast.Name(id="Default"), args=[kind, default], keywords=[]):
                return self.kind(name, kind, {"default": self.literal(default)})
        return self.kind(name, node, {})

    def tensor(self, name: str, args: list[ast.expr], options: dict[str, ast.expr]) -> Tensor:
        read: dict[str, Callable[[ast.expr], Any]] = {
            "strides": self.dims,
            "exact_strides": self.dims,
            "device": self.word,
        }
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
        try:
            return read_literal(node)
        except (TypeError, ValueError):
            raise self.refuse(node) from None

    def dims(self, node: ast.expr) -> tuple[Dim, ...]:
        if isinstance(node, ast.List):
            return tuple(self.dim(item) for item in node.elts)
        raise self.refuse(node)

    def requirement(self, node: ast.expr, integers: dict[str, Scalar]) -> Requirement:
        """A condition, or a tuple of one and its message; `integers` has parameters by name."""
        whole = {name: each for name, each in integers.items() if each.dtype.kind != "float"}
        named = {name: each.value for name, each in whole.items()}
        reader = _Reader(self.text, {**named, **self.symbols}, named)
        match node:
            case ast.Tuple(elts=[condition, ast.Constant(value=str(message))]):
                return require(reader.condition(condition), message)
        return require(reader.condition(node))

    def condition(self, node: ast.expr) -> Condition:
        match node:
            case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[right]) if (
                name in self.floats and type(op) in _COMPARED
            ):
                number = float(ast.unparse(right))
                return compare_float(_COMPARED[type(op)], self.floats[name], number)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
                return compare(_COMPARED[type(op)], self.dim(left), self.dim(right))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ~self.condition(operand)
            case ast.BoolOp(op=op, values=values):
                join = and_ if isinstance(op, ast.And) else or_
                return reduce(join, map(self.condition, values))
        raise self.refuse(node)

    def dim(self, node: ast.expr) -> Dim:
        match node:
            case ast.Attribute(value=ast.Name(id=word), attr="value") if word in self.values:
                return self.values[word]
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
