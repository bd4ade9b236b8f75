"""In the process of MLIR: sizes of arguments that a module's own operations require to be equal.

An operation of `linalg` ties its operands' sizes by its indexing maps; a copy ties those of its two
memrefs; an assertion may compare two sizes.  Only the first block of the function counts, which
every call executes, and an unknown operation ties nothing: so each argument that is refused would
have been wrong.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Final

from ferrule.compiler.errors import CompileError
from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir import pipelines
from ferrule.frontends.mlir.expressions import Expression, SizeOf, expression
from ferrule.frontends.mlir.kinds import Place, Tie, Ties
from ferrule.frontends.mlir.reading import attribute, find_function

_SHAPED: Final = re.compile(r"(?:memref|tensor)<((?:(?:\?|\d+)x)*)")
_MAP: Final = re.compile(r"affine_map<\([^)]*\)(?:\[[^]]*\])? -> \((.*)\)>")
_LOOP: Final = re.compile(r"d\d+")
_SAME: Final = (
    *("memref.cast", "tensor.cast", "memref.memory_space_cast", "memref.assume_alignment"),
    *("bufferization.to_tensor", "bufferization.to_buffer", "bufferization.to_memref"),
    *("bufferization.clone", "memref.copy", "linalg.softmax"),
    "bufferization.materialize_in_destination",
)
"""Operations whose shaped operands and results all have one shape."""
_ELEMENTWISE: Final = ("arith", "math")
_SIZED: Final = ("memref.alloc", "memref.alloca", "tensor.empty", "bufferization.alloc_tensor")
_EQUAL: Final = 0
"""The number of a predicate of `arith.cmpi`."""
_AT_MOST: Final = (3, 7)
"""Those of the signed and the unsigned `<=`."""
_INT32_MAX: Final = (1 << 31) - 1
_DIM: Final = ("memref.dim", "tensor.dim")

Key = Hashable
"""Identifies a size: its position, its number, or an object for a size that is not known."""


def tied_sizes(session: Session, module: Any, symbol: str) -> Ties:
    """What the function requires of the sizes of its arguments."""
    copy = module.operation.clone()
    session.run(copy, pipelines.pipeline(pipelines.GENERALIZE))
    function = find_function(copy, symbol)
    return _Sizes().of(function)


def asserted_sizes(function: Any) -> Ties:
    """What the assertions at the beginning of a function require of the sizes of its arguments;
    removes these assertions."""
    sizes = _Sizes()
    ties = sizes.of(function)
    for each in sizes.understood:
        each.erase()
    return ties


def asserted_relations(session: Session, function: Any) -> Iterator[tuple[Place, Expression]]:
    """The sizes that must equal an expression, by the assertions at the beginning of a function;
    removes these assertions."""
    for each in [each.operation for each in function.regions[0].blocks[0].operations]:
        compared = _made_by(each.operands[0], "arith.cmpi") if each.name == "cf.assert" else None
        if compared is None or int(compared.attributes["predicate"]) != _EQUAL:
            continue
        try:
            left, right = (expression(session, side) for side in compared.operands)
        except CompileError:
            continue
        if isinstance(left, SizeOf):
            each.erase()
            yield (left.position, left.axis), right


class _Sizes:
    """The sizes in the first block of a function, as sets of equal sizes."""

    __slots__ = ("_known", "_multiples", "_numbers", "_parents", "_shapes", "_small", "understood")

    def __init__(self) -> None:
        self._parents: dict[Key, Key] = {}
        self._shapes: dict[Any, list[Key]] = {}
        self._known: dict[Any, Key] = {}
        self._numbers: dict[Any, int] = {}
        self._small: set[Key] = set()
        self._multiples: dict[Key, int] = {}
        self.understood: list[Any] = []
        """The assertions that the result contains."""

    def of(self, function: Any) -> Ties:
        """See `tied_sizes`."""
        block = function.regions[0].blocks[0]
        for position, argument in enumerate(block.arguments):
            self._define(argument, [(position, axis) for axis in range(_rank(argument) or 0)])
        for each in block.operations:
            self._operation(each.operation)
        sets: defaultdict[Key, list[Place | int]] = defaultdict(list)
        for key in list(self._parents):
            if isinstance(key, (int, tuple)):
                sets[self._find(key)].append(key)
        small = {self._find(key) for key in self._small}
        multiples = defaultdict[Key, int](lambda: 1)
        for key, number in self._multiples.items():
            multiples[self._find(key)] = math.lcm(multiples[self._find(key)], number)
        # A set with two different numbers: the call reports it when it reaches that operation.
        return tuple(
            Tie(tuple(sorted(each, key=_order)), multiples[key], is_small=key in small)
            for key, each in sets.items()
            if sum(isinstance(one, int) for one in each) < 2
            and (len(each) > 1 or key in small or multiples[key] > 1)
        )

    def _operation(self, operation: Any) -> None:
        name, operands = operation.name, list(operation.operands)
        self._results(operation, operands)
        shaped = [each for each in (*operands, *operation.results) if _rank(each) is not None]
        if name == "cf.assert":
            self._asserted(operation, operands[0])
        elif name == "linalg.generic":
            self._by_maps(operation, operands)
        elif name in _SAME or (name.partition(".")[0] in _ELEMENTWISE and shaped):
            for each in shaped[1:]:
                self._tie(self._shape(shaped[0]), self._shape(each))

    def _results(self, operation: Any, operands: Sequence[Any]) -> None:
        """Records the facts about an operation's results that follow from its name."""
        match operation.name:
            case "arith.constant":
                if found := re.match(r"(-?\d+) : index", str(operation.attributes["value"])):
                    self._numbers[operation.results[0]] = int(found[1])
            case name if name in _DIM:
                shape, axis = self._shape(operands[0]), self._numbers.get(operands[1])
                if axis is not None and 0 <= axis < len(shape):
                    self._known[operation.results[0]] = shape[axis]
            case name if name in _SIZED:
                self._sized(operation, operands)
            case "linalg.generic":
                first = len(operands) - len(operation.results)
                for result, init in zip(operation.results, operands[first:], strict=True):
                    if _rank(result) is not None:
                        self._tie(self._shape(result), self._shape(init))

    def _sized(self, operation: Any, operands: Sequence[Any]) -> None:
        """Records the sizes of a memref or tensor, which are the operation's operands in order."""
        shape, given = self._shape(operation.results[0]), iter(operands)
        for key in shape:
            if isinstance(key, int):
                continue
            size = next(given, None)
            if size is not None:
                self._union(key, self._index(size))

    def _index(self, value: Any) -> Key:
        """The size that a number equals."""
        if value in self._numbers:
            return self._numbers[value]
        return self._known.setdefault(value, object())

    def _asserted(self, operation: Any, condition: Any) -> None:
        """Records what an assertion says of sizes: two are equal, one is a multiple of a number, or
        fits into 32 bits."""
        compared = _made_by(condition, "arith.cmpi")
        if compared is None:
            return
        predicate, (left, right) = int(compared.attributes["predicate"]), compared.operands
        number = self._numbers.get(right)
        rest = _made_by(left, "arith.remui", "arith.remsi")
        if predicate == _EQUAL and number == 0 and rest is not None:
            size, divisor = rest.operands[0], self._numbers.get(rest.operands[1], 0)
            if divisor > 0 and size in self._known:
                self._multiples[self._index(size)] = divisor
                self.understood.append(operation)
        elif predicate == _EQUAL and left in self._known and (right in self._known or number):
            self._union(self._index(left), self._index(right))
            self.understood.append(operation)
        elif predicate in _AT_MOST and number == _INT32_MAX and left in self._known:
            self._small.add(self._index(left))
            self.understood.append(operation)

    def _by_maps(self, operation: Any, operands: Sequence[Any]) -> None:
        loops: dict[str, Key] = {}
        for value, each in zip(operands, attribute(operation, "indexing_maps"), strict=True):
            found = _MAP.fullmatch(str(each))
            if found is None or _rank(value) is None:
                continue
            # In a sum of loop variables there is no comma, so commas separate results.
            results = found[1].split(", ")
            if len(results) != _rank(value):
                continue
            for key, loop in zip(self._shape(value), results, strict=True):
                if _LOOP.fullmatch(loop):
                    self._union(key, loops.setdefault(loop, object()))

    # ---- shapes, and what is the same ----

    def _shape(self, value: Any) -> list[Key]:
        if value not in self._shapes:
            self._define(value, [object() for _ in range(_rank(value) or 0)])
        return self._shapes[value]

    def _define(self, value: Any, keys: list[Key]) -> None:
        """Gives a value's sizes these keys, and the constant numbers of its type."""
        self._shapes[value] = [
            key if size is None else size
            for key, size in zip(keys, _sizes(value) or [], strict=True)
        ]

    def _tie(self, left: list[Key], right: list[Key]) -> None:
        if len(left) == len(right):
            for one, other in zip(left, right, strict=True):
                self._union(one, other)

    def _find(self, key: Key) -> Key:
        while (parent := self._parents.setdefault(key, key)) != key:
            key = parent
        return key

    def _union(self, left: Key, right: Key) -> None:
        self._parents[self._find(left)] = self._find(right)


def _order(place: Place | int) -> tuple[int, ...]:
    """Sorts the places of sizes, and numbers behind them."""
    return (1, place) if isinstance(place, int) else (0, *place)


def _made_by(value: Any, *names: str) -> Any:
    """The operation of one of these names that makes a value, None for another one."""
    owner = getattr(value.owner, "operation", None)
    return owner if owner is not None and owner.name in names else None


def _sizes(value: Any) -> list[int | None] | None:
    """The sizes in a value's type, None for each dynamic one; None for a type without rank."""
    found = _SHAPED.match(str(value.type))
    if found is None or str(value.type).startswith(("memref<*", "tensor<*")):
        return None
    return [None if each == "?" else int(each) for each in found[1].split("x")[:-1]]


def _rank(value: Any) -> int | None:
    sizes = _sizes(value)
    return None if sizes is None else len(sizes)
