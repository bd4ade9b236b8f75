"""What host functions did with sizes, as conditions of a call over the symbols of several
recordings.

A recording is what a host function does for its sizes, and for all others with which each of its
comparisons comes out the same.  So a call is right if it is like one of the recordings in all of
them.  Where a comparison cannot be written over symbols, the sizes in it are the recorded ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import reduce
from typing import Any, Final

from ferrule.frontends.triton.recorded.log import Compared, Log
from ferrule.frontends.triton.recorded.nodes import (
    FLOAT,
    Leaf,
    Node,
    Tree,
    at_least_0,
    evaluated,
    grows,
    is_argument,
    is_float,
    leaves_of,
    replaced,
)
from ferrule.frontends.triton.recorded.numbers.exact import name_of
from ferrule.frontends.triton.recorded.sizes import Sizes
from ferrule.frontends.triton.traced.knowledge import OPPOSITE, SWAPPED, Knowledge, needed
from ferrule.specs import (
    Condition,
    Dim,
    Requirement,
    Scalar,
    Sym,
    Tensor,
    condition_symbols,
    symbols_of,
)
from ferrule.specs.conditions import (
    Comparison,
    Computed,
    FloatExpr,
    FloatRelation,
    Real,
    as_float,
    evaluate_float,
    holds,
)
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import Compound, make, maximum

_OVER_SIZES: Final = ("add", "mul", "floordiv", "ceildiv", "mod")
_DIVISIONS: Final = ("floordiv", "ceildiv", "mod")
_OPERANDS: Final = {"fneg": 1, "fabs": 1, "fsqrt": 1, "fadd": 2, "fsub": 2, "fmul": 2, "fdiv": 2}
_MOST: Final = 1 << 40
"""No size is larger."""

_NO_CASE: Final = "a recording has no other case: "
_MOST_LINES: Final = 3
_MOST_DIMS: Final = 16

Case = dict[Condition, str]
"""The conditions of one recording, each with the message for a call that does not meet it."""


@dataclass(slots=True)
class Following:
    """The sizes of recordings and what was done with them; `compared` are the comparisons of each.

    `alone`: conditions over numbers that are no sizes here are left out.  `is_called`: all that the
    host function did was seen.  `integers` and `floats` are arguments of the host function that
    callers give, by name, `chosen` those that are what they were in the recording, and `_held` what
    else holds in a call that is like a recording.
    """

    sizes: Sizes
    logs: Sequence[Log]
    compared: list[list[Compared]]
    alone: bool = False
    is_called: bool = False
    integers: dict[str, Sym] = field(default_factory=dict)
    floats: dict[str, Scalar] = field(default_factory=dict)
    chosen: list[str] = field(default_factory=list)
    arguments: dict[str, Tensor] = field(default_factory=dict)
    """The tensors that callers give, by their names in the recordings."""
    owners: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """Whose memory of callers a storage of a recording is, by the recording and the storage."""
    read: dict[Leaf, None] = field(default_factory=dict)
    """The sizes of which numbers were made."""
    _held: dict[int, Case] = field(default_factory=dict)
    _dims: dict[Leaf, Dim | None] = field(default_factory=dict)

    def dim(self, trees: Sequence[Tree | None], values: Sequence[int]) -> Dim | None:
        """The number that was made in this way in all recordings, over symbols; None for one that
        is none, or was made in several ways."""
        first = trees[0]
        self._note(*trees)
        if first is None or any(each != first for each in trees):
            return None
        found = None if is_float(first) else self._over(first)
        if found is None or not self._is_open or self.sizes.values(found) != tuple(values):
            return None
        return found

    def real(self, trees: Sequence[Tree | None], values: Sequence[float]) -> FloatExpr | None:
        """The float that was made in this way in all recordings, of what a call gives; None for one
        that is the same in every call, was made in several ways, or of numbers that were kept."""
        first = trees[0]
        self._note(*trees)
        if first is None or self.alone or any(each != first for each in trees):
            return None
        if not self._open(first):
            return None
        found = self._real(first)
        if found is None:
            return None
        made = (evaluate_float(found, *self._given(at)) for at in range(len(self.logs)))
        same = all(Real.of(a) == Real.of(b) for a, b in zip(made, values, strict=True))
        return found if same else None

    def _given(self, at: int) -> tuple[dict[Sym, int], dict[str, float]]:
        """The sizes and floats of a recording."""
        known = {**self.sizes.symbols, **self.sizes.numbers}
        floats = {name: self.logs[at].values[Leaf(name, FLOAT)] for name in self.floats}
        return {symbol: each[at] for symbol, each in known.items()}, floats

    def pin(self, trees: Sequence[Tree | None], values: Sequence[Any], what: str) -> None:
        """A call is one in which these numbers are what they were in a recording."""
        self._note(*trees)
        for at, (tree, value) in enumerate(zip(trees, values, strict=True)):
            if tree is not None and is_float(tree):
                self.compared[at].append(Compared("same", tree, Real.of(value), True, what))
            elif tree is not None:
                self.compared[at].append(Compared("eq", tree, value, True, what))

    def _note(self, *trees: Tree | None) -> None:
        for tree in trees:
            self.read |= dict.fromkeys(() if tree is None else leaves_of(tree))

    def strides_read(self) -> list[Leaf]:
        """The strides of which numbers were made, and those that were compared where their size was
        not known to be another one than 1."""
        compared = (
            leaf
            for several in self.compared
            for sizes in [_longer(several)]
            for each in several
            for trees in [[each.right] if each.unless is not None else [each.left, each.right]]
            for tree in trees
            for leaf in leaves_of(tree)
            if (leaf.of, leaf.axis) not in sizes
        )
        return [leaf for leaf in dict.fromkeys([*self.read, *compared]) if leaf.kind == "stride"]

    def explain(self, trees: Sequence[Tree | None], values: Sequence[Any], found: Dim) -> None:
        """A number whose values an expression has is that in a call, if it is what it was.

        How the host function made it is not followed: of what it does, the recorded value is right
        in a call that is like its recording, and the expression is so where it has this value.
        """
        if isinstance(found, int) or not self._is_made(trees, found):
            return
        for at, value in enumerate(values):
            said = "the host function makes this number in a way that is not followed"
            self._hold(at, Comparison("eq", found, value), said)

    def _is_made(self, trees: Sequence[Tree | None], found: Dim) -> bool:
        """Whether the host function may have made a number, for all that is known of it."""
        is_one = self.alone and all(
            tree == trees[0] for tree in trees
        )  # of sizes that are not here
        if any(tree is not None for tree in trees) and not is_one:
            return True
        taken = [leaf for log in self.logs for leaf in log.taken() if self._open(leaf)]
        if all(map(self._is_general, taken)) and self._is_named(found):
            return False
        decided = [log.decided() for log in self.logs]
        return self.is_called or bool(taken) or any(one != decided[0] for one in decided)

    def choose(self, param: Scalar, recorded: Sequence[Any]) -> None:
        """An argument is what it was in the recording that a call is like; so are all sizes, for
        of what it is nobody is told."""
        self.chosen.append(param.name)
        for at, each in enumerate(recorded):
            said = f"{param.name} is {each!r} in a recording"
            is_value: Condition = (
                FloatRelation("same", as_float(param), Real.of(each))
                if param.dtype.kind == "float"
                else Comparison("eq", param.value, int(each))
            )
            self._hold(at, is_value, said)
            for symbol, sizes in self.sizes.symbols.items():
                self._hold(at, Comparison("eq", symbol, sizes[at]), said)

    def _hold(self, at: int, condition: Condition, said: str) -> None:
        self._held.setdefault(at, {}).setdefault(condition, said)

    @property
    def _is_open(self) -> bool:
        """Whether anything differs between the recordings."""
        return bool(self.sizes.symbols or self.integers or self.floats)

    def requirements(self) -> list[Requirement]:
        """What calls must be like."""
        if not self._is_open and not self._held:
            return []
        cases = [self._needed(self._case(at)) for at in range(len(self.logs))]
        shared = [each for each in cases[0] if all(each in case for case in cases)]
        found = [Requirement(each, cases[0][each] + self._told(each)) for each in shared]
        left = [[each for each in case if each not in shared] for case in cases]
        if all(left):
            several = [reduce(lambda a, b: a & b, case) for case in left]
            either = reduce(lambda a, b: a | b, dict.fromkeys(several))
            said = (cases[at][each] for at, several in enumerate(left) for each in several)
            found.append(Requirement(either, self._said([*said]) + self._told(either)))
        return found

    def _told(self, condition: Condition) -> str:
        """Which sizes of the host function's tensors those are that have another name, as that of
        a kernel's parameter."""
        told = dict[str, str]()
        for symbol in condition_symbols(condition):
            for name, tensor in self.arguments.items():
                sizes = (f"{name}.shape[{axis}]" for axis in _axes_of(tensor.shape, symbol))
                steps = (f"{name}.stride({axis})" for axis in _axes_of(tensor.strides, symbol))
                for where in (*sizes, *steps):
                    told.setdefault(str(symbol), where)
        plain = {f"{name}_{axis}" for name in self.arguments for axis in range(_MOST_DIMS)}
        words = [f"{name} is {where}" for name, where in told.items() if name not in plain]
        return f" ({', '.join(words)})" if words else ""

    def _said(self, cases: Sequence[str]) -> str:
        """What is said of a call that is like no recording: where they decided."""
        lines = dict.fromkeys(
            each.removeprefix(_NO_CASE) for each in cases if each.startswith(_NO_CASE)
        )
        of_host = [each for each in lines if each.rpartition(":")[2].isdigit()]
        shown = ", ".join(of_host[:_MOST_LINES])
        said = "the recordings have no call of this kind: add one"
        said += f"; they decide at {shown}" if shown else ""
        if not self.chosen:
            return said
        return f"{said}, or call with {', '.join(self.chosen)} and the sizes of one of them"

    # ---- cases ----

    def _case(self, at: int) -> Case:
        """The conditions under which a call is like one recording."""
        case: Case = {}
        pinned: dict[Tree, int] = {
            each.left: each.right
            for each in self.compared[at]
            if isinstance(each.left, Node) and isinstance(each.right, int) and _is_pin(each)
            if each.unless is None
        }
        for each in self.compared[at]:
            said = _NO_CASE + each.where
            if not _is_pin(each):
                sides = replaced(each.left, pinned), replaced(each.right, pinned)
                each = replace(each, left=sides[0], right=sides[1])
            case |= dict.fromkeys(self._conditions(at, each), said)
        return case | self._of_numbers_taken(at) | self._held.get(at, {})

    def _needed(self, case: Case) -> Case:
        """The conditions that follow neither from bounds of the symbols nor from others."""
        symbols = frozenset(self.sizes.symbols)
        known = Knowledge((), symbols)
        open_ones = [(each, True) for each in case if known.outcome(each) is not True]
        return {each: case[each] for each, _ in needed(open_ones, symbols)}

    def _of_numbers_taken(self, at: int) -> Case:
        """Sizes whose number the host function took are the recorded ones: it may be a key, or
        what a list is repeated by."""
        case: Case = {}
        for leaf, where in self.logs[at].taken().items():
            if not self._open(leaf) or self._is_general(leaf):
                continue
            what = "number" if is_argument(leaf) else "size"
            said = f"the host function takes the number at {where}: record this {what}, or name it "
            case |= dict.fromkeys(self._points(at, [leaf]), said + "in general=")
        return case

    def _is_general(self, leaf: Leaf) -> bool:
        named = self.sizes.general
        if leaf.kind == FLOAT:
            return not isinstance(named, bool) and leaf.of in named
        dim = self._of_leaf(leaf)
        return dim is not None and self._is_named(dim)

    def _is_named(self, dim: Dim) -> bool:
        """Whether a person said that other sizes than the recorded ones do the same."""
        named = self.sizes.general
        return not isinstance(named, bool) and all(each.name in named for each in symbols_of(dim))

    def _conditions(self, at: int, each: Compared) -> list[Condition]:
        """A comparison with its outcome in one recording, as conditions over symbols."""
        if each.unless is not None:
            return self._of_elements(at, each, each.unless)
        open_ones = self._open(each.left, each.right)
        if not open_ones:
            return []
        if is_float(each.left) or is_float(each.right):
            return self._of_floats(at, each, open_ones)
        op: Any = each.op if each.outcome else OPPOSITE[each.op]  # type: ignore[index]
        left, right = self._over(each.left), self._over(each.right)
        if left is not None and right is not None:
            if left == right and op in ("eq", "le", "ge"):
                return []
            divisors = [*dict.fromkeys((*_divisors(left), *_divisors(right)))]
            if not any(0 in self.sizes.values(by) for by in divisors):
                return [Comparison(op, left, right)]
            if any(self.sizes.values(by)[at] <= 0 for by in divisors):
                return self._points(at, open_ones)
            more: list[Condition] = [Comparison("ge", by, 1) for by in divisors]
            return [*more, Comparison(op, _guarded(left), _guarded(right))]
        found = self._by_threshold(at, op, each.left, each.right)
        if found is None:
            found = self._by_threshold(at, SWAPPED[op], each.right, each.left)
        return self._points(at, open_ones) if found is None else found

    def _of_elements(self, at: int, each: Compared, size: Tree) -> list[Condition]:
        """A comparison of a stride that a size of 1 makes needless."""
        known = [self._over(tree) for tree in (each.left, each.right, size)]
        left, right, number = known
        if left is not None and left == right and each.outcome:
            return []
        if left is None or right is None or number is None:
            sizes = self._open(each.left, each.right, size)
            return [] if self.alone else self._points(at, sizes)
        if any(True for dim in (left, right, number) for _ in _divisors(dim)):
            return self._points(at, self._open(each.left, each.right, size))
        if not each.outcome:
            return [*_unless_plain("ne", number, 1), *_unless_plain("ne", left, right)]
        if number == 1:
            return []
        same = Comparison("eq", left, right)
        return [same] if isinstance(number, int) else [Comparison("eq", number, 1) | same]

    def _of_floats(self, at: int, each: Compared, leaves: Sequence[Leaf]) -> list[Condition]:
        left, right = self._real(each.left), self._real(each.right)
        if left is None or right is None or self.alone:
            return self._points(at, leaves)
        relation = FloatRelation(each.op, left, right)  # type: ignore[arg-type]
        symbols, floats = self._given(at)
        if holds(relation, symbols, None, floats) is not each.outcome:  # of a number that was kept
            return self._points(at, leaves)
        return [relation if each.outcome else ~relation]

    def _points(self, at: int, leaves: Sequence[Leaf]) -> list[Condition]:
        """Sizes and numbers are what they were in one recording."""
        floats = [leaf for leaf in leaves if leaf.kind == FLOAT and leaf.of in self.floats]
        dims = {leaf: self._of_leaf(leaf) for leaf in leaves if leaf.kind != FLOAT}
        found: list[Condition] = [
            FloatRelation("same", as_float(self.floats[leaf.of]), Real.of(value))
            for leaf in floats
            for value in [self.logs[at].values[leaf]]
        ]
        found += [
            Comparison("eq", dim, self.logs[at].values[leaf])
            for leaf, dim in dims.items()
            if dim is not None and not isinstance(dim, int)
        ]
        if None in dims.values() and not self.alone:
            symbols = {**self.sizes.symbols, **self.sizes.numbers}.items()
            found += [Comparison("eq", symbol, values[at]) for symbol, values in symbols]
        return list(found)

    def _by_threshold(self, at: int, op: Any, left: Tree, right: Tree) -> list[Condition] | None:
        """`f(size) op number` as a bound of the size, for a function that never shrinks."""
        leaves, known = self._open(left), self._constants(at)
        if len(leaves) != 1 or self._open(right) or not grows(left, leaves[0], known):
            return None
        (leaf,) = leaves
        dim = self._of_leaf(leaf)
        if dim is None or isinstance(dim, int):
            return None
        number = evaluated(right, known)
        least = -_MOST if is_argument(leaf) else 0
        first = least
        for each in reversed([*at_least_0(left, leaf)]):  # what is inside of others is first
            first = 1 + _last(each, leaf, known, -1, first)
        if self.logs[at].values[leaf] < first:  # where it may shrink
            return None
        most, below = (_last(left, leaf, known, each, first) for each in (number, number - 1))
        bounds: dict[str, list[Condition]] = {
            "le": [dim <= most],
            "lt": [dim <= below],
            "ge": [dim > below],
            "gt": [dim > most],
            "eq": [dim > below, dim <= most],
            "ne": [(dim <= below) | (dim > most)],
        }
        return [*([dim >= first] if first > least else []), *bounds[op]]

    # ---- sizes ----

    def _open(self, *trees: Tree) -> list[Leaf]:
        """The sizes in these numbers that are no constants."""
        leaves = dict.fromkeys(leaf for tree in trees for leaf in leaves_of(tree))
        return [leaf for leaf in leaves if not self._is_constant(leaf)]

    def _is_constant(self, leaf: Leaf) -> bool:
        if leaf.kind == FLOAT:
            return self._same_float(leaf) is not None
        return isinstance(self._of_leaf(leaf), int)

    def _same_float(self, leaf: Leaf) -> Real | None:
        """The float that an argument was in all recordings."""
        values = {Real.of(each) for each in self._values(leaf)}
        return values.pop() if len(values) == 1 else None

    def _constants(self, at: int) -> dict[Leaf, int]:
        sizes = ((k, each) for k, each in self.logs[at].values.items() if k.kind != FLOAT)
        return {leaf: each for leaf, each in sizes if isinstance(self._of_leaf(leaf), int)}

    def _values(self, leaf: Leaf) -> tuple[Any, ...]:
        """The values of a size in the recordings that have it."""
        return tuple(log.values[leaf] for log in self.logs if leaf in log.values)

    def _of_leaf(self, leaf: Leaf) -> Dim | None:
        if leaf not in self._dims:
            values = self._values(leaf)
            known = len(values) == len(self.logs) and not leaf.unknown
            if len(set(values)) > 1 and not self._is_of_call(leaf):
                known = False
            own = self._of_tensor(leaf)
            if is_argument(leaf) and not self.alone:
                self._dims[leaf] = self._of_argument(leaf, values)
            elif own is not None and self.sizes.values(own) == values:
                self._dims[leaf] = own
            else:
                found = self._dims[leaf] = self.sizes.found(values) if known else None
                if leaf.opaque and found is not None and not self._is_named(found):
                    self.explain([leaf], values, found)
        return self._dims[leaf]

    def _is_of_call(self, leaf: Leaf) -> bool:
        """Whether a call has the tensor of a size. Nobody may give a tensor that is in an object:
        then its recorded sizes count."""
        foreign = [log.foreign.get(leaf.of) for log in self.logs]
        if self.alone or all(each is None for each in foreign):
            return True
        owners = {self.owners.get((at, each or 0)) for at, each in enumerate(foreign)}
        return len(owners) == 1 and None not in owners

    def _of_tensor(self, leaf: Leaf) -> Dim | None:
        """A size or stride of a tensor that callers give, as its spec says it."""
        tensor = self.arguments.get(name_of(leaf))
        if tensor is None or leaf.kind not in ("shape", "stride"):
            return None
        return (tensor.shape if leaf.kind == "shape" else tensor.strides)[leaf.axis]

    def _of_argument(self, leaf: Leaf, values: tuple[int, ...]) -> Dim | None:
        """An integer that callers give, or its value, to which calls are held."""
        if leaf.of in self.integers:
            return self.integers[leaf.of]
        return values[0] if len(set(values)) == 1 else None

    def _real(self, tree: Tree) -> FloatExpr | None:
        """A float over what a call gives; None for one that follows from something else."""
        if isinstance(tree, Real):
            return tree
        if isinstance(tree, Leaf):
            assert tree.kind == FLOAT
            given = self.floats.get(tree.of)
            return as_float(given) if given is not None else self._same_float(tree)
        if not isinstance(tree, Node):
            return Real.of(float(tree))
        if tree.op == "float":
            dim = self._over(tree.left)
            return None if dim is None else as_float(dim)
        sides = [self._real(each) for each in (tree.left, tree.right)][: _OPERANDS[tree.op]]
        known = [each for each in sides if each is not None]
        op: Any = tree.op[1:]
        return Computed(op, tuple(known)) if len(known) == len(sides) else None

    def _over(self, tree: Tree) -> Dim | None:
        """A number over symbols; None for one that sizes of a call cannot be."""
        if isinstance(tree, Leaf):
            return self._of_leaf(tree)
        if not isinstance(tree, Node):
            return tree if isinstance(tree, int) else None
        left, right = self._over(tree.left), self._over(tree.right)
        if left is None or right is None or tree.op not in _OVER_SIZES:
            return None
        if tree.op in _DIVISIONS and isinstance(right, int) and right <= 0:
            return None
        op: Any = tree.op
        return make(op, left, right)


def _axes_of(dims: Sequence[Dim], symbol: Sym) -> list[int]:
    """The dims that are a symbol."""
    return [axis for axis, dim in enumerate(dims) if dim == symbol]


def _last(tree: Tree, leaf: Leaf, known: Mapping[Leaf, int], number: int, least: int) -> int:
    """The largest size for which the function is at most a number; the one before `least` if there
    is none."""
    low, high = least - 1, _MOST
    while low < high:
        middle = (low + high + 1) // 2
        if _at_most(tree, {**known, leaf: middle}, number):
            low = middle
        else:
            high = middle - 1
    return low


def _at_most(tree: Tree, values: Mapping[Leaf, int], number: int) -> bool:
    try:
        return evaluated(tree, values) <= number
    except OverflowError:
        return False


def _divisors(dim: Dim) -> Iterator[Dim]:
    """The divisors in a number that are known at the call."""
    if isinstance(dim, Compound):
        yield from (*_divisors(dim.lhs), *_divisors(dim.rhs))
        if dim.op in _DIVISIONS and not isinstance(dim.rhs, int):
            yield dim.rhs


def _guarded(dim: Dim) -> Dim:
    """A number whose divisors are not 0: calls like another recording may have a 0 there, and of a
    condition all parts are evaluated."""
    if not isinstance(dim, Compound):
        return dim
    left, right = _guarded(dim.lhs), _guarded(dim.rhs)
    is_open = dim.op in _DIVISIONS and not isinstance(right, int)
    return make(dim.op, left, maximum(right, 1) if is_open else right)


def _longer(compared: Sequence[Compared]) -> set[tuple[str, int]]:
    """The dims that are no 1 in a recording, by a comparison of it: in a call that is like it the
    stride moves elements."""
    known = (each for each in compared if each.op in ("eq", "ne") and each.right == 1)
    longer = (each.left for each in known if each.outcome is (each.op == "ne"))
    return {(leaf.of, leaf.axis) for leaf in longer if isinstance(leaf, Leaf)}


def _unless_plain(op: Any, left: Dim, right: Dim) -> list[Condition]:
    """A comparison of what a call tells; none of two numbers."""
    is_plain = isinstance(left, int) and isinstance(right, int)
    return [] if is_plain else [Comparison(op, left, right)]


def _is_pin(each: Compared) -> bool:
    """Whether a number has one value."""
    return each.outcome is (each.op == "eq") and each.op in ("eq", "ne")
