"""Random expressions: what each says, and the dtype that it has.

An expression has a run-time value in every operation, for what is known at compile time is
ordinary Python.  Operands without a common dtype are converted; divisions may be by zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ferrule.specs import Boolean, DType, Float32, Int32
from random_programs.choices import Choices
from random_programs.indices import masked
from random_programs.promotion import promoted

ARITHMETIC: Final = ("+", "-", "*")
INTEGRAL: Final = ("//", "%", "//", "%", "&", "|", "^", "<<", ">>")
BITWISE: Final = ("&", "|", "^")
ROUNDINGS: Final = ("floor", "ceil", "trunc", "round", "fabs")
COMPARE: Final = ("<", "<=", ">", ">=", "==", "!=")
SMALL: Final = (0, 1, 2, 3, 7, 13, 64, 100)
REALS: Final = ("0.0", "1.0", "0.5", "2.5", "0.1", "3e4", "1e-8", "1e300", "INF", "NAN")


def name_of(dtype: DType) -> str:
    """How a program writes a dtype."""
    return f"fe.{dtype.__name__}"


@dataclass(frozen=True)
class Typed:
    """The text of an expression, in parentheses where it needs them, and its dtype."""

    text: str
    dtype: DType


@dataclass(frozen=True)
class Tensor:
    """A tensor that can be read: its name, dtype and the number of its dims.

    `last`: the size of its last dim, a power of two, where programs know it.
    """

    name: str
    dtype: DType
    ndim: int = 1
    last: int = 0


@dataclass(frozen=True)
class Helper:
    """A function of numbers: the dtypes that it is written for, and of its results."""

    name: str
    parameters: Mapping[str, DType]
    results: tuple[DType, ...]


@dataclass
class Scope:
    """What can be read: numbers by the text that reads them, integers known at compile time,
    tensors, and helpers.

    `divides`: whether integers are divided.  `whole`: whether a number can be a whole tensor, which
    decides nothing.
    """

    numbers: dict[str, DType] = field(default_factory=dict)
    constants: list[str] = field(default_factory=list)
    tensors: tuple[Tensor, ...] = ()
    helpers: tuple[Helper, ...] = ()
    divides: bool = True
    whole: bool = False

    def inner(self) -> Scope:
        """The scope of a nested block, whose names are gone after it."""
        return replace(self, numbers=dict(self.numbers), constants=list(self.constants))


@dataclass(frozen=True)
class Expressions:
    """Draws expressions.  `dtypes`: those of one program, so few that they meet often."""

    choices: Choices
    dtypes: Sequence[DType]

    def number(self, scope: Scope, depth: int) -> Typed:
        """A run-time number of any dtype."""
        if depth <= 0:
            return self.leaf(scope, 0)
        weights = {
            self.leaf: 2,
            self.binary: 8,
            self.converted: 2,
            self.unary: 2,
            self.extremum: 1,
            self.float_function: 2,
            self.question: 1,
        }
        if not scope.whole:
            weights |= {self.chosen: 2, self.truth: 2}
        if scope.helpers:
            weights |= {self.called: 2}
        return self.choices.weighted(weights)(scope, depth - 1)

    def of(self, dtype: DType, scope: Scope, depth: int) -> str:
        """A run-time number of this dtype."""
        found = self.number(scope, depth)
        return found.text if found.dtype is dtype else f"{name_of(dtype)}({found.text})"

    # ---- leaves ----

    def leaf(self, scope: Scope, depth: int) -> Typed:
        """A name, or an element of a tensor."""
        names = [Typed(text, dtype) for text, dtype in scope.numbers.items()]
        if not names or scope.tensors and self.choices.chance(30):
            return self.element(scope)
        return self.choices.one(names[::-1])

    def element(self, scope: Scope) -> Typed:
        """An element of a tensor, at coordinates that it has."""
        tensor = self.choices.one(scope.tensors)
        index = ", ".join(self.index(tensor, axis, scope) for axis in range(tensor.ndim))
        return Typed(f"{tensor.name}[{index}]", tensor.dtype)

    def index(self, tensor: Tensor, axis: int, scope: Scope) -> str:
        """A coordinate within a dim."""
        if tensor.last and axis == tensor.ndim - 1 and self.choices.chance(80):
            return masked(self.choices, tensor.last, self.whole_numbers(scope))
        integers = [text for text, dtype in scope.numbers.items() if dtype.is_integer]
        inner = "0"
        if integers and self.choices.chance(80):
            name = self.choices.one(integers)
            inner = name if promoted(scope.numbers[name], Int32) else f"fe.Int32({name})"
        elif scope.constants:
            inner = self.choices.one(scope.constants)
        elif not integers:  # Of an empty tensor that is a division by zero, not its element.
            return f"0 % {tensor.name}.shape[{axis}]"
        return f"({inner} + {self.choices.below(4)}) % {tensor.name}.shape[{axis}]"

    def whole_numbers(self, scope: Scope) -> list[str]:
        """Integers that an index can be made of, the newest first."""
        names = [
            name if promoted(dtype, Int32) else f"fe.Int32({name})"
            for name, dtype in scope.numbers.items()
            if dtype.is_integer
        ]
        return names[::-1] or [*scope.constants, "fe.Int32(5)"][:1]

    def literal(self, near: DType, scope: Scope) -> Typed:
        """A number known at compile time beside a number of another dtype."""
        kinds = {"int": 4, "float": 3 if near.kind == "float" else 1, "typed": 1, "bool": 1}
        match self.choices.weighted(kinds):
            case "float":
                text = self.choices.one(("", "-")) + self.choices.one(REALS)
                return Typed(text, near if near.kind == "float" else Float32)
            case "bool":
                return Typed(self.choices.one(("True", "False")), near)
            case "typed":
                dtype = self.choices.one([d for d in self.dtypes if promoted(d, near)] or [near])
                value = "1" if dtype is Boolean else str(self.choices.one(SMALL))
                common = promoted(dtype, near)
                assert common is not None
                return Typed(f"{name_of(dtype)}({value})", common)
        dtype = Int32 if near is Boolean else near
        if scope.constants and self.choices.chance(40):
            return Typed(self.choices.one(scope.constants), dtype)
        return Typed(str(self.choices.one(self.integers(dtype))), dtype)

    def integers(self, dtype: DType) -> Sequence[int]:
        """Integers that a dtype holds, its ends among them."""
        if not dtype.is_integer:
            return [*SMALL, *(-x for x in SMALL)]
        low, high = dtype.range
        numbers = [*SMALL, *(-x for x in SMALL), low, low + 1, high - 1, high]
        return [x for x in numbers if low <= x <= high]

    # ---- operations ----

    def pair(self, scope: Scope, depth: int) -> tuple[str, str, DType]:
        """Two operands, at least one of them known only at run time, and their common dtype."""
        left = self.number(scope, depth)
        if self.choices.chance(35):
            right = self.literal(left.dtype, scope)
            if self.choices.chance(30):
                return right.text, left.text, right.dtype
            return left.text, right.text, right.dtype
        right = self.number(scope, depth)
        common = promoted(left.dtype, right.dtype)
        if common is None:
            right = Typed(f"{name_of(left.dtype)}({right.text})", left.dtype)
            common = left.dtype
        return left.text, right.text, common

    def binary(self, scope: Scope, depth: int) -> Typed:
        """`x op y`."""
        left, right, dtype = self.pair(scope, depth)
        kinds: dict[str, tuple[str, ...]] = {
            "bool": (*ARITHMETIC, "/", *BITWISE, "<<", ">>"),
            "float": (*ARITHMETIC, "/"),
        }
        integral = INTEGRAL if scope.divides else INTEGRAL[4:]
        op = self.choices.one(kinds.get(dtype.kind, (*ARITHMETIC, "/", *integral)))
        if op == "/" and dtype.kind != "float":
            dtype = Float32
        elif dtype is Boolean and op not in BITWISE:
            dtype = Int32
        return Typed(f"({left} {op} {right})", dtype)

    def converted(self, scope: Scope, depth: int) -> Typed:
        """`fe.Int8(x)`."""
        dtype = self.choices.one(self.dtypes)
        inner = self.number(scope, depth).text
        if dtype is Float32 and self.choices.chance(30):
            inner = f"fe.TFloat32({inner})"
        if not scope.whole and self.choices.chance(20):
            return Typed(f"{inner}.to({name_of(dtype)})", dtype)
        return Typed(f"{name_of(dtype)}({inner})", dtype)

    def unary(self, scope: Scope, depth: int) -> Typed:
        """An operator or function of one number."""
        inner = self.number(scope, depth)
        dtype, text = inner.dtype, inner.text
        signed = Int32 if dtype is Boolean else dtype
        ways = [
            Typed(f"(-{text})", signed),
            Typed(f"abs({text})", signed),
            Typed(f"fe.math.sqrt({text})", dtype if dtype.kind == "float" else Float32),
            Typed(f"({text} ** {2 + self.choices.below(2)})", signed),
            Typed(f"(+{text})", signed),
        ]
        if dtype.kind != "float":
            ways.append(Typed(f"(~{text})", dtype))
        return self.choices.one(ways)

    def extremum(self, scope: Scope, depth: int) -> Typed:
        """`min` and `max`."""
        left, right, dtype = self.pair(scope, depth)
        name = self.choices.one(("max", "min", "fe.math.max", "fe.math.min"))
        return Typed(f"{name}({left}, {right})", dtype)

    def float_function(self, scope: Scope, depth: int) -> Typed:
        """A function of floats that is exact."""
        name = self.choices.one(
            ("floor", "ceil", "trunc", "round", "fabs", "copysign", "fmod", "fma")
        )
        if name == "copysign":
            # The sign of a NaN is nobody's business, and an integer is none.
            left, whole = self.number(scope, depth), Int32
            if promoted(left.dtype, Int32) is None:
                whole = left.dtype
            dtype = promoted(left.dtype, whole) or whole
            operands = [left.text, f"{name_of(whole)}({self.number(scope, depth).text})"]
        elif name in ("fmod", "fma"):
            left, right, dtype = self.pair(scope, depth)
            operands = [left, right]
            if name == "fma":
                operands.append(self.of(dtype, scope, depth))
        else:
            inner = self.number(scope, depth)
            operands, dtype = [inner.text], inner.dtype
        result = dtype if dtype.kind == "float" else Float32
        return Typed(f"fe.math.{name}({', '.join(operands)})", result)

    def question(self, scope: Scope, depth: int) -> Typed:
        """What is asked of one number, about its bits or its kind."""
        inner = self.number(scope, depth)
        if inner.dtype.is_integer:
            return Typed(f"fe.math.{self.choices.one(('popc', 'clz'))}({inner.text})", Int32)
        return Typed(f"fe.math.{self.choices.one(('isnan', 'isinf'))}({inner.text})", Boolean)

    def chosen(self, scope: Scope, depth: int) -> Typed:
        """`x if c else y`."""
        left = self.number(scope, depth)
        condition = self.condition(scope, depth)
        right = self.of(left.dtype, scope, depth)
        return Typed(f"({left.text} if {condition} else {right})", left.dtype)

    def truth(self, scope: Scope, depth: int) -> Typed:
        """A condition as a value."""
        if self.choices.chance(50):
            return Typed(f"({self.comparison(scope, depth)})", Boolean)
        return Typed(f"fe.Boolean({self.boolean(scope, depth)})", Boolean)

    def called(self, scope: Scope, depth: int) -> Typed:
        """A helper's result."""
        helper = self.choices.one(scope.helpers)
        place = self.choices.below(len(helper.results))
        at = f"[{place}]" if len(helper.results) > 1 else ""
        return Typed(f"{self.call(helper, scope, depth)}{at}", helper.results[place])

    def call(self, helper: Helper, scope: Scope, depth: int) -> str:
        """A helper's call, the last argument by name now and then."""
        arguments = [self.of(dtype, scope, depth - 1) for dtype in helper.parameters.values()]
        if self.choices.chance(30):
            arguments[-1] = f"{list(helper.parameters)[-1]}={arguments[-1]}"
        return f"{helper.name}({', '.join(arguments)})"

    # ---- conditions ----

    def comparison(self, scope: Scope, depth: int) -> str:
        """`x < y`, or `x < y <= z`."""
        left, right, dtype = self.pair(scope, depth)
        text = f"{left} {self.choices.one(COMPARE)} {right}"
        if self.choices.chance(20):
            # Whatever stands in the middle meets a number of the common dtype.
            text += f" {self.choices.one(COMPARE)} {self.of(dtype, scope, depth)}"
        return text

    def boolean(self, scope: Scope, depth: int) -> str:
        """A condition whose parts are truth values, so that it is one as a value."""
        way = self.choices.below(4) if depth > 0 else 0
        if way == 0:
            return f"({self.comparison(scope, depth)})"
        if way == 1:
            return f"(not {self.boolean(scope, depth - 1)})"
        word = "and" if way == 2 else "or"
        return f"({self.boolean(scope, depth - 1)} {word} {self.boolean(scope, depth - 1)})"

    def condition(self, scope: Scope, depth: int) -> str:
        """What decides: a condition, or any number."""
        way = self.choices.below(5) if depth > 0 else 0
        if way == 0:
            return f"({self.comparison(scope, depth)})"
        if way == 1:
            return self.number(scope, depth - 1).text
        if way == 2:
            return f"(not {self.condition(scope, depth - 1)})"
        word = "and" if way == 3 else "or"
        return f"({self.condition(scope, depth - 1)} {word} {self.condition(scope, depth - 1)})"
