"""What is wrong with the row of an operator, by what the operator means and by what was executed.

Each check compares a column with something that does not read it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from ferrule import specs
from ferrule.language.codegen import CodegenError
from ferrule.language.faces import maths
from ferrule.language.folding import scalars as folding
from ferrule.language.ir import ops, scalars
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.scalars import ScalarOp
from ferrule.language.mathlib import expand
from ferrule.language.mlir import arithmetic
from ferrule.language.mlir.text import Text
from ferrule.specs.dtypes import Kind
from scalar_facts import deeds, mlir
from scalar_facts.meanings import (
    DTYPES,
    KINDS,
    NAMES,
    WIDTH,
    Array,
    agree,
    count_of,
    is_commutative,
    is_exact,
    kinds_of,
    meaning,
    samples,
)

LIBDEVICE: Final = frozenset(
    ("exp", "exp2", "exp10", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "cbrt")
    + ("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh")
    + ("atanh", "erf", "erfc", "pow", "atan2", "fmod", "copysign", "fabs", "floor", "ceil")
    + ("round", "trunc", "rint", "hypot", "fdim", "remainder")
)
"""Functions of one or two floats in the libdevice user's guide, without prefix and suffix."""
INSTRUCTIONS: Final = frozenset(
    ("neg", "not", "sqrt", "popc", "clz", "fabs", "floor", "ceil", "round", "trunc", "copysign")
    + ("add", "sub", "mul", "div", "max", "min", "and", "or", "xor", "shl", "shr")
)
"""What the PTX ISA has one instruction for: abs, cvt.rmi, cvt.rpi, cvt.rni, cvt.rzi, ..."""
OPERATORS: Final = frozenset(("neg", "add", "sub", "mul", "div"))
"""Names of CuTe DSL for operators of Python, which `fe.math` has too: they take integers."""


def complaints(name: str, row: ScalarOp) -> Iterator[str]:
    """What is wrong with the row of an operator."""
    for check in _CHECKS:
        yield from check(name, row)


def _kinds(name: str, row: ScalarOp) -> Iterator[str]:
    if frozenset(row.kinds) != executed()[name]:
        yield f"targets compute it for {sorted(executed()[name])}"


@cache
def executed() -> dict[str, frozenset[Kind]]:
    """The kinds for which an operator could be executed and had the right results."""
    found = {**deeds.formulas(), **deeds.emitted()}
    bad = set(deeds.wrong(found))
    return {
        name: frozenset(k for n, k in found if n == name and f"{n} of {k}" not in bad)
        for name in scalars.EVERY
    }


def _library(name: str, row: ScalarOp) -> Iterator[str]:
    if row.library != _is_expanded(name):
        yield f"the library has {'a' if _is_expanded(name) else 'no'} formula for it"


@cache
def _is_expanded(name: str) -> bool:
    """Whether the pass replaces an op of float32 by others, asked without the row."""
    x = ops.Value(specs.Float32)
    made: ops.Op = (
        ops.Unary(ops.Value(specs.Float32), name, x)  # type: ignore[arg-type]
        if count_of(name) == 1
        else ops.Binary(ops.Value(specs.Float32), name, x, x)  # type: ignore[arg-type]
    )
    return "float" in kinds_of(name) and expand.expansion(Builder(), made) is not None


def _function(name: str, row: ScalarOp) -> Iterator[str]:
    if (row.function == "integers") != _is_face_of_integers(name):
        yield f"fe.math has {'a' if _is_face_of_integers(name) else 'no'} function of integers"
    if row.function != "integers":
        yield from _function_of_floats(name, row)


def _is_face_of_integers(name: str) -> bool:
    return hasattr(maths, name) and kinds_of(name) == {"int", "uint"}


def _function_of_floats(name: str, row: ScalarOp) -> Iterator[str]:
    face = getattr(maths, name, None)
    of_floats = face is not None and kinds_of(name) == {"float"} and name not in OPERATORS
    if of_floats != (row.function is not None):
        yield f"fe.math has {'a' if of_floats else 'no'} function of floats of this name"
    if not of_floats or row.function is None:
        return
    takes = "fast" in inspect.signature(face).parameters
    if takes != (row.function == "rounded"):
        yield f"the function of fe.math takes {'' if takes else 'no '}`fast`"
    if is_exact(name) != (row.function == "exact"):
        yield f"its results are {'' if is_exact(name) else 'not '}all floats"


def _values(name: str, row: ScalarOp) -> Iterator[str]:
    own = kinds_of(name) - executed_by_formula(name)
    for column, kinds in (("integers", own - {"float"}), ("floats", own & {"float"})):
        function = getattr(row, column)
        if (function is not None) != bool(kinds):
            yield f"it needs {'a' if kinds else 'no'} value of {column}"
        elif not all(_computes(name, kind, function) for kind in kinds):
            yield f"its value of {column} is another one"


@cache
def executed_by_formula(name: str) -> frozenset[Kind]:
    """The kinds for which an operator is a function of the library."""
    return frozenset({"float"} if _is_expanded(name) else ())


@cache
def _meant(name: str, kind: Kind, width: int) -> Array:
    return meaning(name, kind, samples(kind, count_of(name), width))


def _dtypes(kind: Kind) -> tuple[specs.DType, ...]:
    if kind not in ("int", "uint"):
        return (DTYPES[kind],)
    return tuple(d for d in specs.ALL_DTYPES if d.kind == kind and d.bits in (8, 16, 32, 64))


@cache
def _computes(name: str, kind: Kind, function: Callable[..., Any]) -> bool:
    """Whether the value of a row is what the operator means, in every width of integers."""
    row = ScalarOp((kind,), integers=function, floats=function)
    for dtype in _dtypes(kind):
        width = dtype.bits
        given = samples(kind, count_of(name), width)
        each = zip(*(side.tolist() for side in given), strict=True)
        try:
            found = [folding.computed(row, dtype, *one) for one in each]
        except (TypeError, ValueError, AssertionError):
            return False
        if not agree(np.array(found, dtype.name), _meant(name, kind, width), ulps=0):
            return False
    return True


def _sign(name: str, row: ScalarOp) -> Iterator[str]:
    if row.sign != signs().get(name):
        yield f"Python's operator is {signs().get(name)}"


@cache
def signs() -> dict[str, str]:
    """Python's operators, each with the operator that means what Python makes of it."""
    pairs = [np.array(side, "i4") for side in zip(*PAIRS, strict=True)]
    found = {}
    for sign in SIGNS:
        real = [eval(f"x {sign} y", {"x": x, "y": y}) for x, y in PAIRS]
        kind: Kind = "float" if any(isinstance(each, float) for each in real) else "int"
        for name in NAMES:
            if count_of(name) == 2 and kind in kinds_of(name):
                given = [each.astype(DTYPES[kind].name) for each in pairs]
                if meaning(name, kind, given).tolist() == real:
                    found[name] = sign
    return found


SIGNS: Final = ("+", "-", "*", "/", "//", "%", "&", "|", "^", "<<", ">>")
"""Python's operators on numbers, but for `**`, whose results are of many dtypes."""
PAIRS: Final = tuple((x, y) for x in (-7, -3, 0, 1, 2, 5, 40) for y in (1, 2, 3, 4, 20))
"""Pairs of integers that tell these apart."""


def _counts(name: str, row: ScalarOp) -> Iterator[str]:
    if row.counts != _is_count(name):
        yield f"it is {'a' if _is_count(name) else 'no'} number of bits"


@cache
def _is_count(name: str) -> bool:
    """Whether its results are from 0 to the width, and both are some."""
    if kinds_of(name) != {"int", "uint"} or count_of(name) == 2:
        return False
    results = wanted(name, "uint")
    return bool(results.max() == WIDTH and results.min() == 0)


def _libdevice(name: str, row: ScalarOp) -> Iterator[str]:
    wanted = name in LIBDEVICE and name not in INSTRUCTIONS
    if row.libdevice != wanted:
        yield f"NVIDIA's library {'has' if wanted else 'is not needed for'} it"


def _mlir(name: str, row: ScalarOp) -> Iterator[str]:
    for kind in KINDS:
        if kind in kinds_of(name):
            yield from _written(name, kind, row)
        elif kind in row.mlir:
            yield f"it takes no {kind}"


def _written(name: str, kind: Kind, row: ScalarOp) -> Iterator[str]:
    given = samples(kind, count_of(name))
    if kind == "uint":
        given = tuple(each.view("i4") for each in given)
    for native in (True, False):
        try:
            lines, operands, result = _text(name, kind, row, native)
            found = mlir.value(lines, dict(zip(operands, given, strict=True)), result)
        except (CodegenError, mlir.Unreadable) as error:
            yield f"of {kind}: {error}"
            return
        if not agree(found.view(DTYPES[kind].name), wanted(name, kind)):
            yield f"what is written for {kind} means something else"
    if kind in row.mlir and not _reads_the_name(name, kind):
        yield f"its name for {kind} is written nowhere"


@cache
def _reads_the_name(name: str, kind: Kind) -> bool:
    """Whether the name in a row is written at all, found by one that nothing else has."""
    row = replace(scalars.EVERY[name], mlir={kind: "some.thing"})
    for native in (True, False):
        with suppress(CodegenError):
            if any(" some.thing " in line for line in _text(name, kind, row, native)[0]):
                return True
    return False


def _text(name: str, kind: Kind, row: ScalarOp, native: bool) -> tuple[list[str], list[str], str]:
    """MLIR's operations for an operator with this row: the lines, the operands, the result."""
    text, rows = Text(), {name: row}
    operands = [text.known(f"%in{i}", mlir.TYPES[kind]) for i in range(count_of(name))]
    emit: Any = arithmetic.unary if len(operands) == 1 else arithmetic.binary
    with patch.multiple(arithmetic, UNARY=rows, BINARY=rows):
        result = emit(text, name, DTYPES[kind], *operands, native=native)
    return text.lines, operands, result


@cache
def wanted(name: str, kind: Kind) -> Array:
    """What an operator means for the samples."""
    return meaning(name, kind, samples(kind, count_of(name)))


_CHECKS: Final[tuple[Callable[[str, ScalarOp], Iterator[str]], ...]] = (
    _kinds,
    _library,
    _function,
    _values,
    _sign,
    _counts,
    _libdevice,
    _mlir,
)


# ---- wrong rows ----


def mutations(name: str, row: ScalarOp) -> Iterator[tuple[str, ScalarOp]]:
    """All wrong rows of an operator that there are: one column each, and those of all others."""
    for kinds in _subsets():
        if set(kinds) != set(row.kinds):
            yield f"kinds {kinds}", replace(row, kinds=kinds)
    for flag in ("library", "counts", "libdevice"):
        yield f"{flag}: {not getattr(row, flag)}", replace(row, **{flag: not getattr(row, flag)})  # type: ignore[arg-type]
    for function in {None, "rounded", "exact", "integers"} - {row.function}:
        yield f"function {function}", replace(row, function=function)  # type: ignore[arg-type]
    for column in ("integers", "floats"):
        for how, function in _other_values(name, column, getattr(row, column)):
            yield f"{column} {how}", replace(row, **{column: function})
    for sign in {None, *SIGNS, "**", "@"} - {row.sign}:
        yield f"sign {sign}", replace(row, sign=sign)
    for kind in KINDS:
        yield from _other_words(kind, row)
    for other, theirs in scalars.EVERY.items():
        if _columns(theirs) != _columns(row):
            yield f"the row of {other}", theirs


def _columns(row: ScalarOp) -> list[Any]:
    return [getattr(row, each) for each in ScalarOp.__dataclass_fields__]


def _subsets() -> Iterator[tuple[Kind, ...]]:
    for number in range(1, 1 << len(KINDS)):
        yield tuple(kind for place, kind in enumerate(KINDS) if number >> place & 1)


def _other_values(
    name: str, column: str, own: Callable[..., Any] | None
) -> Iterator[tuple[str, Callable[..., Any] | None]]:
    if own is not None:
        yield "None", None
        yield "one more", lambda *given: own(*given) + 1
        yield "one less", lambda *given: own(*given) - 1
        yield "of other operands", lambda x, *rest: own(x + 1, *rest)
        if not is_commutative(name, "float" if column == "floats" else "int"):
            yield "the other way round", lambda x, y, *rest: own(y, x, *rest)
    for other, theirs in scalars.EVERY.items():
        if getattr(theirs, column) not in (None, own):
            yield f"of {other}", getattr(theirs, column)
    yield "0", lambda *given: 0


def _other_words(kind: Kind, row: ScalarOp) -> Iterator[tuple[str, ScalarOp]]:
    own = row.mlir.get(kind)
    if own is not None:
        rest = {other: word for other, word in row.mlir.items() if other != kind}
        yield f"no name in MLIR for {kind}", replace(row, mlir=rest)
    for word in (*mlir.words(kind), "math.sigmoid"):
        if own is None or word != (own if "." in own else f"arith.{own}"):
            yield f"{word} for {kind}", replace(row, mlir={**row.mlir, kind: word})
