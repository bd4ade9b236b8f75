"""How a host function made a number of sizes: a tree of operations, with sizes as leaves.

The trees of two recordings of the same function are equal, wherever it went the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ferrule.specs.conditions import Real
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Leaf:
    """A size that a host function read: `kind` of the tensor, or argument, `of`; or an argument
    that is a float.

    `unknown`: it follows from other sizes, nobody knows how.  `opaque`: so it does, and who made it
    took the numbers of these: what has its values explains it where it has them.
    """

    of: str
    kind: str
    axis: int = 0
    unknown: bool = False
    opaque: bool = False

    def __str__(self) -> str:
        return f"{self.of}.{self.kind}[{self.axis}]" if self.kind else self.of


@dataclass(frozen=True, slots=True)
class Node:
    """An operation on two numbers; one that takes a single number has a 0 behind it."""

    op: str
    left: Tree
    right: Tree


Tree = int | Leaf | Node | Real

FLOATS: Final = frozenset({"float", "fadd", "fsub", "fmul", "fdiv", "fneg", "fabs", "fsqrt"})
"""Operations whose result is a float; "float" converts an integer."""
FLOAT: Final = "float"
"""The kind of a leaf that is a float, an argument of the host function."""

OPERATIONS: Final[dict[str, Callable[[int, int], int]]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "floordiv": lambda a, b: a // b,
    "ceildiv": lambda a, b: -(-a // b),
    "mod": lambda a, b: a % b,
    "or": lambda a, b: a | b,
    "and": lambda a, b: a & b,
    "xor": lambda a, b: a ^ b,
    "lshift": lambda a, b: _shifted(a, b),
    "rshift": lambda a, b: a >> b,
    "pow": lambda a, b: int(a**b),
    "bit_length": lambda a, _: a.bit_length(),
    "smear": lambda a, bits: _smeared(a, bits),
}
_DIVISIONS: Final = ("floordiv", "ceildiv")
_GROWING: Final = ("add", "mul", "floordiv", "ceildiv", "rshift", "lshift")
"""Operations by a number of at least 0 whose result never shrinks where the left side grows."""


_MOST_BITS: Final = 1 << 12


def _shifted(value: int, bits: int) -> int:
    """`value << bits`.  OverflowError for what has more bits than any number of a launch, which is
    no reason to fill the memory."""
    if value and bits > _MOST_BITS:
        raise OverflowError(f"{value} << {bits}")
    return value << bits


def _smeared(value: int, bits: int) -> int:
    """A number, in which as many bits from each one on are set: `n | n >> 1`, and so on."""
    shift = 1
    while shift < bits:
        value, shift = value | value >> shift, 2 * shift
    return value


def made(op: str, left: Tree, right: Tree) -> Tree:
    """An operation; those by which programs round up are told as what they are."""
    if op in FLOATS:
        return Node(op, left, right)
    if isinstance(left, int) and isinstance(right, int):
        return OPERATIONS[op](left, right)
    match op, left, right:
        case "sub", _, int():
            return made("add", left, -right)
        case "add", int(), _:
            return made("add", right, left)
        case "mul", int(), _:
            return made("mul", right, left)
        case "sub", _, _:
            return made("add", left, made("mul", right, -1))
        case ("add", _, 0) | ("mul", _, 1) | ("floordiv", _, 1):
            return left
        case "add", Node("add", inner, int() as first), int():
            return made("add", inner, first + right)
        case "mul", Node("floordiv", Node("mul", inner, -1), int() as by), -1 if by > 0:
            return made("ceildiv", inner, by)
        case "floordiv", Node("add", inner, int() as more), int() if more == right - 1 > 0:
            return made("ceildiv", inner, right)
        case "floordiv", Node("add", Node("add", inner, by), -1), _ if by == right:
            return made("ceildiv", inner, right)
        case "rshift", _, int():
            return made("floordiv", left, 1 << right)
        case "lshift", _, int():
            return made("mul", left, 1 << right)
        case "pow", 2, _:
            return made("lshift", 1, right)
        case "or", _, Node("floordiv", again, 2) if again == left:
            return Node("smear", left, 2)
        case "or", Node("smear", inner, int() as bits), Node("floordiv", again, int() as by):
            if again == left and by == 1 << bits:
                return Node("smear", inner, 2 * bits)
    return Node(op, left, right)


def is_float(tree: Tree) -> bool:
    """Whether a number is a float."""
    if isinstance(tree, Node):
        return tree.op in FLOATS
    return isinstance(tree, Real) or (isinstance(tree, Leaf) and tree.kind == FLOAT)


def is_argument(leaf: Leaf) -> bool:
    """Whether this is a number that the host function was given."""
    return leaf.kind in ("", FLOAT)


def leaves_of(tree: Tree) -> Iterator[Leaf]:
    """The sizes of which a number was made."""
    if isinstance(tree, Leaf):
        yield tree
    elif isinstance(tree, Node):
        yield from leaves_of(tree.left)
        yield from leaves_of(tree.right)


def replaced(tree: Tree, known: Mapping[Tree, int]) -> Tree:
    """A number in which parts have known values."""
    if tree in known:
        return known[tree]
    if isinstance(tree, Node):
        return made(tree.op, replaced(tree.left, known), replaced(tree.right, known))
    return tree


def evaluated(tree: Tree, values: Mapping[Leaf, int]) -> int:
    """The number, for sizes with these values.  Raises what its operations raise."""
    if isinstance(tree, Node):
        left, right = evaluated(tree.left, values), evaluated(tree.right, values)
        return OPERATIONS[tree.op](left, right)
    assert not isinstance(tree, Real), "a number of sizes is no float"
    return values[tree] if isinstance(tree, Leaf) else tree


def grows(tree: Tree, leaf: Leaf, known: Mapping[Leaf, int]) -> bool:
    """Whether a number of this one size, beside known ones, never shrinks where the size grows, as
    long as no number of `at_least_0` is negative."""
    if tree == leaf:
        return True
    if not isinstance(tree, Node) or not grows(tree.left, leaf, known):
        return isinstance(tree, Node) and _shifts(tree, leaf, known)
    if tree.op in ("smear", "bit_length"):
        return True
    if tree.op not in _GROWING or any(each not in known for each in leaves_of(tree.right)):
        return False
    by = evaluated(tree.right, known)
    return tree.op == "add" or by > 0 or (by == 0 and tree.op not in _DIVISIONS)


def at_least_0(tree: Tree, leaf: Leaf) -> Iterator[Tree]:
    """The numbers in a tree of `grows` that must not be negative: -8 has as many bits as 8, and a
    shift by less than 0 is an error."""
    if not isinstance(tree, Node) or all(each != leaf for each in leaves_of(tree)):
        return
    if tree.op in ("smear", "bit_length"):
        yield tree.left
    elif tree.op == "lshift":
        yield tree.right
    yield from at_least_0(tree.left, leaf)
    yield from at_least_0(tree.right, leaf)


def _shifts(tree: Node, leaf: Leaf, known: Mapping[Leaf, int]) -> bool:
    """As `grows`, of `1 << bits` and of a number in front."""
    if any(each not in known for each in leaves_of(tree.left)):
        return False
    front = evaluated(tree.left, known)
    plain = tree.op == "add" or (tree.op in ("mul", "lshift") and front >= 0)
    return plain and grows(tree.right, leaf, known)
