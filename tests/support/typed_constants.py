"""Random programs whose values are known while compiling, and the same ones where they are not.

`program(seed)` is a pure function of the seed: a module's text, with one body of which every value
is a parameter.  `KNOWN` gives it typed constants, `GIVEN` numbers that it reads from tensors, of
the same dtypes and bits.  `disagreement(seed)` runs both and says in what they differ: in the
dtype of a result, in its bits, in the error of a call, or in that only one compiles.

A NaN is a NaN: its sign and payload are not compared, and no program looks at them.
"""

from __future__ import annotations

import linecache
import math
import random
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

import ferrule as fe
from ferrule.language.promotion import NoCommonType, computed, promote, weak
from ferrule.specs import DType
from ferrule.specs.rounding import converted

INTEGERS: Final = (
    *(fe.Int8, fe.Int16, fe.Int32, fe.Int64),
    *(fe.Uint8, fe.Uint16, fe.Uint32, fe.Uint64),
)
FLOATS: Final = (fe.Float16, fe.BFloat16, fe.Float32, fe.Float64)
DTYPES: Final = (fe.Boolean, *INTEGERS, *FLOATS)
MATHS: Final = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt", "sin"),
    *("cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "sigmoid", "erf", "erfc"),
    *("floor", "ceil", "round", "trunc", "fabs"),
)
KNOWN: Final = "known"
GIVEN: Final = "given"
ROOM: Final = 12
"""How many results a program may have."""
_SIZES: Final = (1, 1, 2, 2, 3, 4)
"""Statements of a body: more of the small ones find more in the same time."""

_HEADER: Final = """\
CODES = {dtype: code for code, dtype in enumerate(DTYPES)}


def put(words, reals, kinds, k, x):
    kinds[k] = CODES[x.dtype]
    if x.dtype.kind == "float":
        reals[k] = fe.Float64(x)
    else:
        words[k] = fe.Int64(x)
"""

_TENSORS: Final = "(words: fe.Tensor, reals: fe.Tensor, kinds: fe.Tensor)"


@dataclass(frozen=True)
class Value:
    """A parameter of a program."""

    name: str
    dtype: DType
    value: bool | int | float

    @property
    def literal(self) -> str:
        """The typed constant."""
        value = self.value
        text = f"float('{value}')" if isinstance(value, float) else repr(value)
        return f"fe.{self.dtype.__name__}({text})"


@dataclass(frozen=True)
class Program:
    """The lines of a body, the values of its parameters, how many results it has.

    `in_kernel`: it runs in a kernel of one thread, else in a host function.
    """

    lines: tuple[str, ...]
    values: tuple[Value, ...]
    count: int
    in_kernel: bool

    @property
    def text(self) -> str:
        """A module's text without its imports."""
        return f"{_HEADER}{self.part('')}"

    def part(self, suffix: str) -> str:
        """The functions of the module, whose names end so."""
        return _functions(self, suffix)


@dataclass(frozen=True)
class Expression:
    """The text of an expression with a dtype."""

    text: str
    dtype: DType


def program(seed: int) -> Program:
    """The program of a seed."""
    chance = random.Random(seed)
    values = tuple(_value(chance, name) for name in "abcdef")
    writer = _Writer(chance, [Expression(v.name, v.dtype) for v in values])
    lines = [line for _ in range(chance.choice(_SIZES)) for line in writer.statement()]
    return Program(tuple(lines), values, writer.count, chance.random() < 0.5)


def _value(chance: random.Random, name: str) -> Value:
    dtype = chance.choice(DTYPES)
    if dtype is fe.Boolean:
        return Value(name, dtype, chance.random() < 0.5)
    if dtype.is_integer:
        low, high = dtype.range
        edges = (0, 1, 2, 3, 7, 100, -1, low, low + 1, high, high - 1, 16777217, 2**53 + 1)
        number = chance.choice((*edges, chance.randint(low, high)))
        return Value(name, dtype, converted(dtype, number))
    special = (0.0, -0.0, 1.0, -1.0, 0.1, 0.5, 3.0, -7.5, 1e-40, 65504.0, 65520.0, 16777217.0)
    wild = (math.inf, -math.inf, math.nan, 1e300, 1e-300, 3.4028235e38, 2.0**63, -129.0, 1e22)
    bits = struct.unpack("<d", struct.pack("<Q", chance.getrandbits(64)))[0]
    near = chance.uniform(-10, 10)
    number = chance.choice((*special, *wild, bits, near, near, near, near))
    return Value(name, dtype, converted(dtype, number))


def _functions(case: Program, suffix: str) -> str:
    names = ", ".join(value.name for value in case.values)
    body = "\n".join(f"    {line}" for line in case.lines)
    known = "\n".join(f"    {value.name} = {value.literal}" for value in case.values)
    given = "\n".join(
        f"    {v.name} = fe.{v.dtype.__name__}"
        f"({'reals' if v.dtype.kind == 'float' else 'words'}[{ROOM + i}])"
        for i, v in enumerate(case.values)
    )
    mark = "kernel" if case.in_kernel else "jit"
    text = f"\n\ndef body{suffix}(words, reals, kinds, {names}):\n{body}\n"
    for way, begin in ((KNOWN, known), (GIVEN, given)):
        name = f"{way}{suffix}"
        inner = f"{name}_in_kernel" if case.in_kernel else name
        text += f"\n\n@fe.{mark}\ndef {inner}{_TENSORS}:"
        text += f"\n{begin}\n    body{suffix}(words, reals, kinds, {names})\n"
        if case.in_kernel:
            text += f"\n\n@fe.jit\ndef {name}{_TENSORS}:"
            text += f"\n    {inner}(words, reals, kinds).launch(grid=1, block=1)\n"
    return text


def joined(cases: Sequence[Program]) -> str:
    """One module of several programs, with a host function `chosen` that runs one of them."""
    text = _HEADER + "".join(case.part(f"_{i}") for i, case in enumerate(cases))
    text += f"\n\n@fe.jit\ndef chosen{_TENSORS[:-1]}, which: fe.Int32):\n"
    for i in range(len(cases)):
        for j, way in enumerate((KNOWN, GIVEN)):
            text += f"    if which == {2 * i + j}:\n        {way}_{i}(words, reals, kinds)\n"
    return text


class _Writer:
    """Writes statements over the values that there are."""

    def __init__(self, chance: random.Random, known: list[Expression]) -> None:
        self.chance = chance
        self.known = known
        self.count = 0

    # ---- statements ----

    def statement(self) -> list[str]:
        """A statement and what shows its result."""
        way = self.chance.choice((self._assign, self._assign, self._assign, self._if, self._loop))
        name = f"v{self.count}"
        lines, dtype = way(name)
        self.known.append(Expression(name, dtype))
        lines.append(f"put(words, reals, kinds, {self.count}, {name})")
        self.count += 1
        return lines

    def _assign(self, name: str) -> tuple[list[str], DType]:
        value = self.expression(3)
        if self.chance.random() < 0.2:
            dtype = self.chance.choice(FLOATS)
            return [f"{name}: fe.{dtype.__name__} = {value.text}"], dtype
        return [f"{name} = {value.text}"], value.dtype

    def _if(self, name: str) -> tuple[list[str], DType]:
        test = self.condition(2)
        dtype = self.chance.choice(DTYPES)
        yes, no = (f"    {name} = {self.of(dtype, 2).text}" for _ in range(2))
        return [f"if {test.text}:", yes, "else:", no], dtype

    def _loop(self, name: str) -> tuple[list[str], DType]:
        """A loop whose bounds have a dtype, with a number that it carries."""
        dtype = self.chance.choice(DTYPES[1:])
        bound = self._converted(self.integer(1), self.chance.choice(INTEGERS))
        stop = f"({bound.text} & 7)"
        count = stop if self.chance.random() < 0.7 else f"{stop}, -3, -1"
        index = f"i{self.count}"
        inner = [*self.known]
        self.known.append(Expression(index, fe.Int64 if bound.dtype.bits > 32 else fe.Int32))
        if bound.dtype is fe.Uint32:
            self.known[-1] = Expression(index, fe.Int64)
        self.known.append(Expression(name, dtype))
        step = self.of(dtype, 2)
        self.known = inner
        start = self.of(dtype, 1)
        return [
            f"{name} = {start.text}",
            f"for {index} in range({count}):",
            f"    {name} = {step.text}",
        ], dtype

    # ---- expressions ----

    def expression(self, depth: int) -> Expression:
        """Any expression."""
        if depth == 0 or self.chance.random() < 0.1:
            return self.chance.choice(self.known)
        ways: tuple[Callable[[int], Expression], ...] = (
            *(self._arithmetic, self._arithmetic, self._bitwise, self.condition, self._unary),
            *(self._conversion, self._conversion, self._maths, self._maths, self._power),
            *(self._extremum, self._conditional, self._folds, self._counted),
        )
        return self.chance.choice(ways)(depth - 1)

    def of(self, dtype: DType, depth: int) -> Expression:
        """An expression of a dtype."""
        return self._converted(self.expression(depth), dtype)

    def integer(self, depth: int) -> Expression:
        """An expression that is an integer."""
        value = self.expression(depth)
        return value if value.dtype.is_integer else self._converted(value, fe.Int32)

    def _converted(self, value: Expression, dtype: DType) -> Expression:
        name = f"fe.{dtype.__name__}"
        if self.chance.random() < 0.5:
            return Expression(f"{name}({value.text})", dtype)
        return Expression(f"({value.text}).to({name})", dtype)

    def _conversion(self, depth: int) -> Expression:
        return self._converted(self.expression(depth), self.chance.choice(DTYPES))

    def _literal(self, near: DType) -> tuple[str, DType]:
        """A Python number beside a number of a dtype, and its own dtype there."""
        number: bool | int | float
        if near.kind == "float" and self.chance.random() < 0.7:
            number = self.chance.choice((0.1, 0.5, -2.5, 3.0, 1e10, 0.0, 1e-7))
        else:
            low = -3 if near.kind != "uint" else 0
            number = self.chance.choice((low, 0, 1, 2, 5, 7, 100, True))
        return f"({number!r})", weak(number, near)

    def pair(self, depth: int, kinds: tuple[DType, ...] = DTYPES) -> tuple[str, str, DType]:
        """Two operands, and the dtype of both together."""
        left = self._among(self.expression(depth), kinds)
        if self.chance.random() < 0.25:
            text, dtype = self._literal(left.dtype)
            both = (text, left.text) if self.chance.random() < 0.5 else (left.text, text)
            return *both, promote(left.dtype, dtype)
        right = self._among(self.expression(depth), kinds)
        try:
            return left.text, right.text, promote(left.dtype, right.dtype)
        except NoCommonType:
            right = self._converted(right, left.dtype)
            return left.text, right.text, left.dtype

    def _among(self, value: Expression, kinds: tuple[DType, ...]) -> Expression:
        return value if value.dtype in kinds else self._converted(value, self.chance.choice(kinds))

    def _arithmetic(self, depth: int) -> Expression:
        sign = self.chance.choice(("+", "-", "*", "/", "//", "%"))
        left, right, dtype = self.pair(depth)
        if sign == "/" and dtype.kind != "float":
            dtype = fe.Float32
        return Expression(f"({left} {sign} {right})", fe.Int32 if dtype is fe.Boolean else dtype)

    def _bitwise(self, depth: int) -> Expression:
        sign = self.chance.choice(("&", "|", "^", "<<", ">>"))
        left, right, dtype = self.pair(depth, (fe.Boolean, *INTEGERS))
        shifts = sign in ("<<", ">>") and dtype is fe.Boolean
        return Expression(f"({left} {sign} {right})", fe.Int32 if shifts else dtype)

    def condition(self, depth: int) -> Expression:
        """An expression that is a Boolean."""
        match self.chance.randrange(6):
            case 0:
                left, right = (self._truth(depth) for _ in range(2))
                sign = self.chance.choice(("and", "or"))
                return Expression(f"({left} {sign} {right})", fe.Boolean)
            case 1:
                return Expression(f"(not {self.expression(depth).text})", fe.Boolean)
            case 2:
                name = self.chance.choice(("isnan", "isinf"))
                value = self._among(self.expression(depth), FLOATS)
                return Expression(f"fe.math.{name}({value.text})", fe.Boolean)
            case 3:
                left, right, _ = self.pair(depth)
                sign = self.chance.choice(("==", "!="))
                return Expression(f"(({left}, 1) {sign} ({right}, 1))", fe.Boolean)
        sign = self.chance.choice(("<", "<=", "==", "!=", ">=", ">"))
        left, right, _ = self.pair(depth)
        if self.chance.random() < 0.2:
            return Expression(f"({left} {sign} {right} {sign} {left})", fe.Boolean)
        return Expression(f"({left} {sign} {right})", fe.Boolean)

    def _truth(self, depth: int) -> str:
        value = self.expression(depth)
        return value.text if value.dtype is fe.Boolean else f"({value.text} != 0)"

    def _unary(self, depth: int) -> Expression:
        value = self.expression(depth)
        sign = self.chance.choice(("-", "+", "~", "abs"))
        if sign == "~" and value.dtype.kind == "float":
            sign = "-"
        if sign == "abs":
            dtype = fe.Int32 if value.dtype is fe.Boolean else value.dtype
            return Expression(f"abs({value.text})", dtype)
        wide = value.dtype is fe.Boolean and sign != "~"
        return Expression(f"({sign}{value.text})", fe.Int32 if wide else value.dtype)

    def _maths(self, depth: int) -> Expression:
        """A function of floats; no program asks for the sign of a NaN."""
        match self.chance.randrange(4):
            case 0:
                name = self.chance.choice(("pow", "atan2", "fmod"))
                left, right, dtype = self.pair(depth)
                text = f"fe.math.{name}({left}, {right})"
            case 1:
                dtype = self.chance.choice(FLOATS)
                number = self.of(dtype, depth).text
                sign = self._converted(self.integer(depth), dtype).text
                text = f"fe.math.copysign({number}, {self.chance.choice((sign, '-0.0'))})"
            case 2:
                dtype = self.chance.choice(FLOATS)
                x, y, z = (self.of(dtype, depth).text for _ in range(3))
                text = f"fe.math.fma({x}, {y}, {z})"
            case _:
                value = self.expression(depth)
                dtype = value.dtype
                text = f"fe.math.{self.chance.choice(MATHS)}({value.text})"
        return Expression(text, computed(dtype) if dtype.kind == "float" else fe.Float32)

    def _power(self, depth: int) -> Expression:
        value = self.expression(depth)
        if value.dtype is fe.Boolean:
            value = self._converted(value, fe.Int32)
        exponent = str(self.chance.randint(0, 5))
        if value.dtype.is_integer and self.chance.random() < 0.4:
            exponent = f"fe.{self.chance.choice(INTEGERS).__name__}({exponent})"
        return Expression(f"({value.text} ** {exponent})", value.dtype)

    def _extremum(self, depth: int) -> Expression:
        left, right, dtype = self.pair(depth)
        name = self.chance.choice(("max", "min", "fe.math.max", "fe.math.min"))
        if self.chance.random() < 0.3 and dtype is not fe.Boolean:
            return Expression(f"{name}({left}, {right}, {self.of(dtype, 0).text})", dtype)
        return Expression(f"{name}({left}, {right})", dtype)

    def _conditional(self, depth: int) -> Expression:
        test, dtype = self.condition(depth), self.chance.choice(DTYPES)
        left, right = (self.of(dtype, depth).text for _ in range(2))
        if self.chance.random() < 0.3:
            return Expression(f"fe.where({test.text}, {left}, {right})", dtype)
        return Expression(f"({left} if {test.text} else {right})", dtype)

    def _folds(self, depth: int) -> Expression:
        if self.chance.random() < 0.4:
            left, right, dtype = self.pair(depth)
            part = self.chance.randrange(2)
            dtype = fe.Int32 if dtype is fe.Boolean else dtype
            return Expression(f"divmod({left}, {right})[{part}]", dtype)
        dtype = self.chance.choice(DTYPES[1:])
        items = ", ".join(self.of(dtype, depth).text for _ in range(3))
        return Expression(f"sum(({items}))", dtype)

    def _counted(self, depth: int) -> Expression:
        name = self.chance.choice(("popc", "clz"))
        return Expression(f"fe.math.{name}({self.integer(depth).text})", fe.Int32)


# ---- run ----


@dataclass(frozen=True)
class Outcome:
    """What a program did: its results as dtypes and bits, or the class of the error it ended with.

    `compiles`: whether it came to a call.
    """

    results: tuple[tuple[str, Any], ...] | None
    error: str | None = None
    compiles: bool = True


def load(text: str, name: str) -> dict[str, Any]:
    """The names of a module with this text, whose source Python finds."""
    source = f"import ferrule as fe\n\nDTYPES = {_names()}\n{text}"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    names: dict[str, Any] = {"__name__": "program"}
    exec(compile(source, name, "exec"), names)
    return names


def _names() -> str:
    return "(" + ", ".join(f"fe.{dtype.__name__}" for dtype in DTYPES) + ")"


def outcome(case: Program, function: Any, options: str) -> Outcome:
    """Compiles and runs one of the two functions."""
    try:
        compiled = fe.compile(function, *_examples(), options=options)
    except fe.CompileError as error:
        return Outcome(None, str(error).splitlines()[0], compiles=False)
    return called(case, compiled)


def called(case: Program, compiled: Callable[..., object], *which: int) -> Outcome:
    """What a compiled function does with the numbers of a program."""
    words, reals = np.zeros(2 * ROOM, np.int64), np.zeros(2 * ROOM, np.float64)
    kinds = np.full(2 * ROOM, -1, np.int32)
    for i, value in enumerate(case.values):
        if value.dtype.kind == "float":
            reals[ROOM + i] = value.value
        else:
            words[ROOM + i] = np.uint64(int(value.value) % (1 << 64)).astype(np.int64)
    arrays = (words, reals, kinds)
    try:
        compiled(*arrays, *which)
    except ZeroDivisionError as error:
        return Outcome(None, type(error).__name__)
    return Outcome(tuple(_result(arrays, i) for i in range(case.count)))


def _examples() -> list[Any]:
    return [
        fe.make_fake_compact_tensor(dtype, (fe.sym_int(),))
        for dtype in (fe.Int64, fe.Float64, fe.Int32)
    ]


def _result(arrays: tuple[np.ndarray, np.ndarray, np.ndarray], i: int) -> tuple[str, Any]:
    words, reals, kinds = arrays
    dtype = DTYPES[kinds[i]]
    if dtype.kind != "float":
        return dtype.name, int(words[i])
    return dtype.name, "nan" if math.isnan(reals[i]) else float(reals[i]).hex()


def disagreement(seed: int, options: str = "--target cpu") -> str | None:
    """In what the two functions of a seed's program differ; None where they do not."""
    case = program(seed)
    with _loaded(case.text, f"<typed constants {seed}>") as names:
        known, given = (outcome(case, names[way], options) for way in (KNOWN, GIVEN))
    if known == given or not (known.compiles or given.compiles):
        return None
    body = case.text.partition("def body")[2].partition("@fe")[0]
    shown = [value.literal for value in case.values]
    return f"seed {seed}: {shown}\nbody{body}known: {known}\ngiven: {given}"


def agree(seeds: Sequence[int], options: str) -> bool:
    """Whether the programs of these seeds, compiled as one, do the same in both ways.

    Where one of them does not compile it is False: `disagreement` tells of each.
    """
    cases = [program(seed) for seed in seeds]
    with _loaded(joined(cases), f"<typed constants {seeds[0]} and more>") as names:
        try:
            compiled = fe.compile(names["chosen"], *_examples(), fe.Int32, options=options)
        except fe.CompileError:
            return False
    return all(
        called(case, compiled, 2 * i) == called(case, compiled, 2 * i + 1)
        for i, case in enumerate(cases)
    )


@contextmanager
def _loaded(text: str, name: str) -> Iterator[dict[str, Any]]:
    try:
        yield load(text, name)
    finally:
        linecache.cache.pop(name, None)


def main(first: int, count: int) -> int:
    """Runs so many seeds and prints what differs; how many do."""
    wrong = [text for seed in range(first, first + count) if (text := disagreement(seed))]
    print(*wrong, sep="\n\n")
    return len(wrong)


if __name__ == "__main__":
    sys.exit(min(main(*map(int, sys.argv[1:])), 100))
