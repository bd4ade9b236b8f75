"""Rows for sizes: they bind symbols, and check sizes, strides and elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ferrule.compiler.checker.code import Code
from ferrule.compiler.checker.format import Binary, Op
from ferrule.compiler.checker.nodes import Node
from ferrule.compiler.messages.context import PlaceKind
from ferrule.specs import (
    Compound,
    Condition,
    Dim,
    Signature,
    Sym,
    Tensor,
    ValueOf,
    condition_symbols,
)
from ferrule.specs.binding import ACTUAL, Binding, Place
from ferrule.specs.conditions import Comparison, ComparisonOp, Junction, Negation
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import INT64_MAX, INT64_MIN, ExprOp
from ferrule.specs.params import SIGNED_KINDS, Shape

_BINARY: Final[dict[ExprOp, Binary]] = {
    "add": Binary.ADD,
    "sub": Binary.SUB,
    "mul": Binary.MUL,
    "floordiv": Binary.FLOORDIV,
    "mod": Binary.MOD,
    "min": Binary.MIN,
    "max": Binary.MAX,
    "ceildiv": Binary.CEILDIV,
}
_COMPARED: Final[dict[ComparisonOp, tuple[bool, Binary, bool]]] = {
    "lt": (False, Binary.LT, False),
    "le": (False, Binary.LE, False),
    "gt": (False, Binary.LT, True),
    "ge": (False, Binary.LE, True),
    "eq": (False, Binary.EQ, False),
    "ne": (True, Binary.EQ, False),
}
"""Whether the result is negated, the operation, and whether the operands are swapped."""
_KINDS: Final = {"shape": PlaceKind.SHAPE, "strides": PlaceKind.STRIDES, "dims": PlaceKind.DIMS}
_Key = tuple[tuple[int, ...], int]


@dataclass(frozen=True, slots=True)
class Number:
    """A size, stride or element of a node."""

    node: Node
    kind: PlaceKind
    axis: int
    dim: Dim

    @property
    def signed(self) -> bool:
        """Whether it can be negative."""
        match self.node.param:
            case Shape(kind=kind):
                return kind in SIGNED_KINDS
            case _:
                return self.kind is PlaceKind.STRIDES

    @property
    def doubled(self) -> bool:
        """Whether the DLTensor has half of it, because it counts two packed elements as one."""
        spec = self.node.param
        if not isinstance(spec, Tensor) or not spec.packed:
            return False
        if self.kind is PlaceKind.SHAPE:
            return self.axis == spec.strides.index(1)
        return spec.strides[self.axis] != 1

    @property
    def exact(self) -> bool:
        """Whether it is a stride that has a meaning in every call."""
        spec = self.node.param
        if self.kind is not PlaceKind.STRIDES or not isinstance(spec, Tensor):
            return False
        return self.axis in spec.exact_strides

    def load(self, code: Code) -> list[int]:
        """Add the row that loads it; give it, if its `a` is to be the target for an arbitrary
        stride."""
        code.at(self.node.at)
        row = code.row(Op.LOAD, kind=self.kind, axis=self.axis, b=int(self.doubled))
        return [] if self.exact else [row]

    def stands_at(self, place: Place) -> bool:
        """Whether this number is at that place."""
        same = self.node.path == place.path and self.node.param is place.param
        return same and (self.kind, self.axis) == (_KINDS[place.kind], place.axis)


def numbers_of(node: Node) -> Iterator[Number]:
    """Sizes and strides of a tensor, or the elements of a shape."""
    match node.param:
        case Tensor(shape=shape, strides=strides):
            for axis, dim in enumerate(shape):
                yield Number(node, PlaceKind.SHAPE, axis, dim)
            for axis, dim in enumerate(strides):
                yield Number(node, PlaceKind.STRIDES, axis, dim)
        case Shape(dims=dims):
            for axis, dim in enumerate(dims):
                yield Number(node, PlaceKind.DIMS, axis, dim)
        case _:
            return


class SizeRows:
    """Makes the rows of one signature."""

    def __init__(self, code: Code, signature: Signature, nodes: tuple[Node, ...]) -> None:
        self.code = code
        self.stack = 2
        self._integer: Callable[[Sym], int] = lambda _: 1
        self.signature = signature
        self._numbers = {symbol: i for i, symbol in enumerate(signature.symbols)}
        self._bindings = {binding.symbol: binding for binding in signature.bindings}
        self._solved: dict[tuple[_Key, PlaceKind, int], list[Sym]] = {}
        self._sites: dict[_Key, Node] = {
            (node.path, id(node.param)): node for root in nodes for node in root.walk()
        }
        for binding in signature.bindings:
            if binding.solution != ACTUAL:
                place = binding.places[0]
                key = ((place.path, id(place.param)), _KINDS[place.kind], place.axis)
                self._solved.setdefault(key, []).append(binding.symbol)

    # ---- symbols ----

    def bind(self) -> None:
        """Bind every symbol."""
        for symbol, number in self._numbers.items():
            if symbol.fallback != 1:  # with which the machine begins
                self.formula(symbol.fallback)
                self.code.row(Op.SOLVE, a=number)
        for binding in self.signature.bindings:
            for place in binding.places:
                self._bind_at(binding, place)

    def _bind_at(self, binding: Binding, place: Place) -> None:
        code, node = self.code, self._sites[place.path, id(place.param)]
        absent = []
        for at, mask in node.guards:
            code.at(at)
            absent.append(code.row(Op.UNLESS, **mask.operands()))
        number = Number(node, _KINDS[place.kind], place.axis, place.dim)
        absent += number.load(code)
        symbol, label = self._numbers[binding.symbol], code.text(place.name)
        if binding.solution == ACTUAL:
            code.row(Op.BIND, a=symbol, b=label)
        else:
            self.formula(binding.solution)
            code.row(Op.SOLVE, a=symbol, b=label)
        code.here(*absent, at=None if node.guards else node.at)

    # ---- expressions ----

    def formula(self, *dims: Dim) -> None:
        """Rows that push the values of these dims."""
        self.code.row(Op.FORMULA)
        for position, dim in enumerate(dims):
            self.stack = max(self.stack, position + self._push(dim))

    def require(self, condition: Condition, push: Callable[[Sym, bool], int]) -> None:
        """Rows that push whether a condition holds, 1 or 0, and then the value of each of its
        symbols; `push` adds those that push the value of an integer parameter, in a condition or to
        be shown, and returns the number of stack entries that they need."""
        self._integer = lambda symbol: push(symbol, False)
        self.code.row(Op.FORMULA)
        symbols = dict.fromkeys(condition_symbols(condition))
        self.stack = max(self.stack, self._holds(condition), 1 + len(symbols))
        self._integer = lambda symbol: push(symbol, True)
        for symbol in symbols:
            self._push(symbol)

    def _holds(self, condition: Condition) -> int:
        """Push whether a condition holds; returns the number of stack entries that this needs."""
        match condition:
            case Comparison(op, lhs, rhs):
                negated, operation, swapped = _COMPARED[op]
                left, right = (rhs, lhs) if swapped else (lhs, rhs)
                room = max(self._push(left), 1 + self._push(right))
                self.code.row(Op.BINARY, kind=operation)
                return max(room, self._negate()) if negated else room
            case Negation(inner):
                return max(self._holds(inner), self._negate())
            case Junction(joint, lhs, rhs):
                room = max(self._holds(lhs), 1 + self._holds(rhs))
                self.code.row(Op.BINARY, kind=Binary.MIN if joint == "and" else Binary.MAX)
                return room
            case _:
                raise AssertionError(condition)

    def _negate(self) -> int:
        """Turn the top of the stack from 1 to 0, and from 0 to 1."""
        self.code.row(Op.PUSH)
        self.code.row(Op.BINARY, kind=Binary.EQ)
        return 2

    def _push(self, dim: Dim) -> int:
        """Push a dim; returns the number of stack entries that this needs."""
        code = self.code
        match dim:
            case Sym(key=ValueOf()):
                return self._integer(dim)
            case Sym() if dim == ACTUAL:
                code.row(Op.PUSH_NUMBER)
                return 1
            case Sym():
                code.row(Op.PUSH_SYMBOL, a=self._numbers[dim])
                return 1
            case Compound(op, lhs, rhs):
                room = max(self._push(lhs), 1 + self._push(rhs))
                code.row(Op.BINARY, kind=_BINARY[op])
                return room
            case int() if INT64_MIN <= dim <= INT64_MAX:
                code.row(Op.PUSH, b=dim)
                return 1
            case _:
                code.row(Op.PUSH_UNDEFINED)
                return 1

    # ---- checks ----

    def check(self, number: Number) -> None:
        """Check a size, stride or element."""
        code, dim = self.code, number.dim
        moot = number.load(code)
        match dim:
            case int():
                code.row(Op.EXACT, b=dim)
            case Sym():
                self._check_symbol(number, dim)
            case Compound():
                self._check_related(number, dim)
        code.here(*moot, at=number.node.at)

    def _check_symbol(self, number: Number, symbol: Sym) -> None:
        code, binding = self.code, self._bindings[symbol]
        binds = [number.stands_at(place) for place in binding.places]
        if binding.solution == ACTUAL and any(binds):
            self._check_range(symbol, number.signed)
        if binds != [True] or binding.solution != ACTUAL:
            code.row(Op.MATCH, a=self._numbers[symbol])
            if not number.signed and not any(binds):
                self._check_range_64()

    def _check_related(self, number: Number, dim: Compound) -> None:
        code, formula = self.code, self.code.text(self.signature.format(dim))
        self.formula(dim)
        code.row(Op.RELATED, a=formula)
        if not number.signed:
            self._check_range_64()
        node = number.node
        key = ((node.path, id(node.param)), number.kind, number.axis)
        for symbol in self._solved.get(key, ()):
            name = code.text(self.signature.symbols[symbol])
            code.row(Op.SYMBOL, a=self._numbers[symbol], b=name)
            self._check_range(symbol, number.signed)

    def _check_range(self, symbol: Sym, signed: bool) -> None:
        """Check the bounds, the range and the divisibility of a symbol for the number."""
        code, high = self.code, (1 << (symbol.width - 1)) - 1
        if symbol.max is not None:
            code.row(Op.LIMIT, b=symbol.max)
        if symbol.min is not None:
            code.row(Op.LIMIT, kind=1, b=symbol.min)
        decided = symbol.max is not None and symbol.min is not None and (signed or symbol.min >= 0)
        if not decided and (symbol.width < 64 or not signed):
            name = code.text(f"int{symbol.width}")
            code.row(Op.RANGE, kind=int(signed), a=name, b=high)
        if symbol.divisibility > 1:
            code.row(Op.DIVISIBLE, b=symbol.divisibility)

    def _check_range_64(self) -> None:
        self.code.row(Op.RANGE, a=self.code.text("int64"), b=INT64_MAX)
